//! How the program is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        // The program has some 300,000 addresses that the loader adjusts at the start, each described by 24 bytes. Packed, most
        // are described by a bit. glibc can read this since 2.36.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
