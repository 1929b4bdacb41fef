//! Lockworks in the Linux kernel: the patch series, building, booting, verdicts.

