//! Rebuilds the crate when a file is added to `experiments/`, which the compiler does not notice.

fn main() {
    println!("cargo:rerun-if-changed=../../experiments");
}
