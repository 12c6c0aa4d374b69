#include "smelt/kernels/dataset/cache.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "smelt/io/fs.h"
#include "smelt/wire/bundle/bundle.h"

namespace smelt {
namespace {

StatusOr<ElementIterator> IterateMemory(const DatasetRef& input,
                                        const std::shared_ptr<MemoryCache>& cache, Step& s) {
  if (auto elements = cache->Elements()) {
    return [elements, at = size_t{0}](Step&) mutable -> NextElement {
      if (at == elements->size()) return EndOfElements();
      return std::optional<Element>((*elements)[at++]);
    };
  }
  ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
  return [cache, in = std::move(in), seen = std::vector<Element>(),
          ended = false](Step& step) mutable -> NextElement {
    if (ended) return EndOfElements();
    ASSIGN_OR_RETURN(auto element, Pull(in, step));
    if (element) {
      seen.push_back(*element);
    } else {
      ended = true;
      cache->Complete(std::move(seen));
    }
    return element;
  };
}

constexpr int64_t kMostCachedItems = 10000000;
constexpr int kItemDigits = 7;  // of the last item's number

// TensorFlow's names: padded with blanks, so that they sort in the order of the elements.
std::string CachedName(int64_t item, size_t component, size_t components) {
  const auto digits = static_cast<int>(absl::StrCat(components - 1).size());
  return absl::StrFormat("%*d_%*d", kItemDigits, item, digits, component);
}

// Passes elements on and writes them to a bundle, which is complete only once the end was reached.
class CacheFileWriter {
 public:
  CacheFileWriter(const std::string& file, FileSystem files, ElementIterator in)
      : file_(file),
        part_(file + "_0"),
        lock_(part_ + ".lockfile"),
        files_(std::move(files)),
        in_(std::move(in)) {}
  CacheFileWriter(const CacheFileWriter&) = delete;
  CacheFileWriter& operator=(const CacheFileWriter&) = delete;
  ~CacheFileWriter() {
    if (writer_ != nullptr) files_.Remove(lock_).IgnoreError();
  }

  NextElement Next(Step& step) {
    if (finished_) return EndOfElements();
    RETURN_IF_ERROR(Begin());
    if (items_ >= kMostCachedItems) {
      RETURN_IF_ERROR(Finish());
      return InvalidArgument("Upstream iterator is producing more than ", kMostCachedItems,
                             " items, which is more than the cache limit.");
    }
    ASSIGN_OR_RETURN(auto element, Pull(in_, step));
    if (!element) {
      RETURN_IF_ERROR(Finish());
      return element;
    }
    for (size_t i = 0; i < element->size(); ++i) {
      RETURN_IF_ERROR(writer_->Add(CachedName(items_, i, element->size()), (*element)[i]));
    }
    ++items_;
    return element;
  }

 private:
  // At the first element. From here on the lock file keeps other iterators from writing.
  Status Begin() {
    if (writer_ != nullptr) return OkStatus();
    RETURN_IF_ERROR(files_.MayWrite(part_));
    if (Exists(part_ + ".index")) {
      return AlreadyExists("Existing cache files found: \n", part_, ".index\n", part_,
                           ".data-00000-of-00001\nTo continue delete the above files.");
    }
    const Status made =
        files_.Make(lock_, absl::StrCat("Created at: ", absl::ToUnixSeconds(absl::Now())));
    if (absl::IsAlreadyExists(made)) {
      const auto contents = files_.Read(lock_);
      return AlreadyExists(
          "There appears to be a concurrent caching iterator running - cache lockfile already "
          "exists ('",
          lock_,
          "'). If you are sure no other running TF computations are using this cache prefix, "
          "delete the lockfile and re-initialize the iterator. Lockfile contents: ",
          contents.ok() ? contents->substr(0, 150) : "");
    }
    RETURN_IF_ERROR(made);
    auto writer = BundleWriter::Create(part_);
    if (!writer.ok()) {
      files_.Remove(lock_).IgnoreError();
      return writer.status();
    }
    writer_ = *std::move(writer);
    return OkStatus();
  }

  Status Finish() {
    finished_ = true;
    RETURN_IF_ERROR(writer_->Finish());
    RETURN_IF_ERROR(MergeBundles({part_}, file_, /*delete_old=*/false));
    writer_.reset();
    return files_.Remove(lock_);
  }

  const std::string file_, part_, lock_;
  const FileSystem files_;
  ElementIterator in_;
  std::unique_ptr<BundleWriter> writer_;  // not nullptr: the lock file is this writer's
  int64_t items_ = 0;
  bool finished_ = false;
};

// Reads the elements of a complete cache.
class CacheFileReader {
 public:
  CacheFileReader(std::string file, FileSystem files, size_t components)
      : file_(std::move(file)), files_(std::move(files)), components_(components) {}

  NextElement Next() {
    if (reader_ == nullptr) {
      ASSIGN_OR_RETURN(reader_, BundleReader::Open(file_, files_));
      names_ = reader_->names();
    }
    // A cache of elements with other components may leave a rest, which is no element.
    if (names_.size() - at_ < components_) return EndOfElements();
    Element element;
    for (size_t i = 0; i < components_; ++i) {
      ASSIGN_OR_RETURN(Tensor value, reader_->Read(names_[at_ + i]));
      element.push_back(std::move(value));
    }
    at_ += components_;
    return std::optional<Element>(std::move(element));
  }

 private:
  const std::string file_;
  const FileSystem files_;
  const size_t components_;
  std::shared_ptr<BundleReader> reader_;
  std::vector<std::string> names_;
  size_t at_ = 0;
};

StatusOr<ElementIterator> IterateFile(const DatasetRef& input, const std::string& file,
                                      const FileSystem& files, Step& s) {
  RETURN_IF_ERROR(files.MayRead(file + ".index"));
  if (Exists(file + ".index")) {
    return [reader = CacheFileReader(file, files, input->types.size())](
               Step&) mutable -> NextElement { return reader.Next(); };
  }
  ASSIGN_OR_RETURN(ElementIterator in, input->make(s));
  return [writer = std::make_unique<CacheFileWriter>(file, files, std::move(in))](
             Step& step) mutable -> NextElement { return writer->Next(step); };
}

}  // namespace

MakeIterator CachedInMemory(DatasetRef input, std::shared_ptr<MemoryCache> cache) {
  return [=](Step& s) { return IterateMemory(input, cache, s); };
}

MakeIterator CachedInFile(DatasetRef input, std::string file, FileSystem files) {
  return [=](Step& s) { return IterateFile(input, file, files, s); };
}

}  // namespace smelt
