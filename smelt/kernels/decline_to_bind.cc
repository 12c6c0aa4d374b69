#include "smelt/kernels/decline_to_bind.h"

namespace smelt {
namespace {

thread_local BindListener* bind_listener = nullptr;

}  // namespace

BindListener::BindListener() : outer_(bind_listener) { bind_listener = this; }

BindListener::~BindListener() { bind_listener = outer_; }

BindListener* BindListener::Current() { return bind_listener; }

}  // namespace smelt
