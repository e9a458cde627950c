// harness: no expectation in
#ifndef LOCKSTEP_CONTROL
static_assert(false);
#endif
