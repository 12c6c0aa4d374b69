// Preloaded by what bench/lower_isa.py wrote: a ud2 that stands for a cpuid answers as the
// processor, less AVX-512 (WITHOUT_AVX512), VNNI, BF16, FP16 and AMX.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#define BIT(n) (1u << (n))

// The bits of leaf 7 that are newer than the level, by subleaf.
static void Mask(unsigned subleaf, unsigned r[4]) {
  if (subleaf == 0) {
    r[2] &= ~(BIT(11) | BIT(14));                               // VNNI, VPOPCNTDQ
    r[3] &= ~(BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25));  // VP2INTERSECT, FP16, AMX
    if (WITHOUT_AVX512) {
      r[1] &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(28) | BIT(30) | BIT(31));  // F DQ IFMA CD BW VL
      r[2] &= ~(BIT(1) | BIT(6) | BIT(12));                                  // VBMI, VBMI2, BITALG
    }
  } else if (subleaf == 1) {
    r[0] &= ~(BIT(4) | BIT(5) | BIT(21) | BIT(23));  // AVX-VNNI, BF16, AMX-FP16, AVX-IFMA
    r[3] &= ~(BIT(4) | BIT(5) | BIT(10) | BIT(19));  // AVX-VNNI-INT8, NE-CONVERT, INT16, AVX10
  }
}

static void OnTrap(int number, siginfo_t* info, void* context) {
  greg_t* g = ((ucontext_t*)context)->uc_mcontext.gregs;
  static const unsigned char trap[2] = {0x0f, 0x0b};
  if (memcmp((const void*)g[REG_RIP], trap, 2) != 0) {
    signal(number, SIG_DFL);  // Another fault: it comes again and ends the process.
    return;
  }
  (void)info;
  const unsigned leaf = (unsigned)g[REG_RAX], subleaf = (unsigned)g[REG_RCX];
  unsigned r[4];
  __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
  if (leaf == 7) Mask(subleaf, r);
  if (leaf == 0x1d || leaf == 0x1e || leaf == 0x24) memset(r, 0, sizeof r);
  g[REG_RAX] = r[0];
  g[REG_RBX] = r[1];
  g[REG_RCX] = r[2];
  g[REG_RDX] = r[3];
  g[REG_RIP] += 2;
}

__attribute__((constructor(101))) static void Listen(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = OnTrap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, 0);
}
