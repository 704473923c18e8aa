//! The migrations are embedded, and cargo does not notice a new one by itself.

fn main() {
    println!("cargo::rerun-if-changed=../../../migrations");
}
