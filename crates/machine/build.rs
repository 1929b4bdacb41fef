//! Builds this crate again when a machine is added or changed.

fn main() {
    lockworks_build::watch("machines");
}
