//! Any bytes as a zip: nothing panics, limits hold, and what was read is written and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skill_packages::{Limits, Package, report};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { files: 20, bytes: 1024 * 1024, instructions: 64 * 1024, ratio: 100 };
    let Ok((package, _)) = Package::read(bytes, "upload.zip", &limits) else { return };
    assert!(package.files.len() <= limits.files);
    assert!(package.files.iter().map(|file| file.bytes.len()).sum::<usize>() <= limits.bytes);
    report(&package);
    let written = package.write().unwrap();
    let (again, _) = Package::read(&written, "upload.zip", &limits).unwrap();
    assert_eq!(again.document.bytes(), package.document.bytes());
    assert_eq!(again.files, package.files);
});
