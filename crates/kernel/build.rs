//! Rebuilds the crate when files change that it embeds from outside of its directory.

fn main() {
    for directory in ["locks", "worlds/kernel", "clients"] {
        println!("cargo:rerun-if-changed=../../{directory}");
    }
}
