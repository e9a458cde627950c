// harness: nothing in the output matches
// expect: a sentence; \[with brackets
#ifndef LOCKSTEP_CONTROL
static_assert(false, "another sentence");
#endif
