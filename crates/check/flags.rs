/// The compiler's options for lock code in the checker, in the build and for a source of one's own.
const FLAGS: &[&str] = &[
    // A thread's state is its stack, which must hold only what the code needs, at constant distances
    // from the stack pointer.
    "-fomit-frame-pointer",
    "-fno-stack-protector",
    "-fcf-protection=none",
    // The address of an operation's site would be live from before a loop, but not on every path to
    // it: two states that behave alike.
    "-fno-move-loop-invariants",
];
