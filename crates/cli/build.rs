//! Exports the functions of the checker that a lock calls which is compiled when the command runs.

fn main() {
    println!("cargo::rustc-link-arg-bins=-Wl,--export-dynamic-symbol=lw_check_*");
}
