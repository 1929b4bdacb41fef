//! What is embedded lies outside of this crate, where the compiler does not look for changes.

fn main() {
    for directory in ["locks", "worlds/kernel", "kernel", "clients"] {
        println!("cargo:rerun-if-changed=../../{directory}");
    }
}
