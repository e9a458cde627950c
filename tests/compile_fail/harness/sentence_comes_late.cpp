// harness: the first error is not
// expect: the sentence; \[0\]
// expect-first: the sentence
#ifndef LOCKSTEP_CONTROL
static_assert(false, "something else");
static_assert(false, "the sentence; [0]");
#endif
