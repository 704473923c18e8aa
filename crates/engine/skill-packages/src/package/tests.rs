use super::*;
use proptest::prelude::*;
use std::io::{Cursor, Write};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const DOC: &str = "---\nname: returns\ndescription: How to treat a return.\n---\nBody\n";

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes) in files {
        zip.start_file(*path, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn read(bytes: &[u8]) -> Result<(Package, Vec<Warning>), PackageError> {
    Package::read(bytes, "upload.zip", &Limits::default())
}

#[track_caller]
fn refused(bytes: &[u8], words: &str) -> Option<String> {
    match read(bytes).unwrap_err() {
        PackageError::Invalid { file, message, .. } => {
            assert!(message.contains(words), "{message}");
            file
        }
        PackageError::TooLarge { message } => panic!("too large: {message}"),
    }
}

#[track_caller]
fn too_large(bytes: &[u8], words: &str) {
    match read(bytes).unwrap_err() {
        PackageError::TooLarge { message } => assert!(message.contains(words), "{message}"),
        PackageError::Invalid { message, .. } => panic!("invalid: {message}"),
    }
}

/// Puts other bytes in the place of a name that occurs in both headers.
fn renamed(mut bytes: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    for at in 0..bytes.len() - from.len() {
        if &bytes[at..at + from.len()] == from {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
    }
    bytes
}

#[test]
fn a_zip_and_a_single_file_are_read() {
    let bytes = zip(&[
        ("returns/SKILL.md", DOC.as_bytes()),
        ("returns/scripts/price.js", b"export default () => 1"),
        ("__MACOSX/returns/._SKILL.md", b"x"),
        ("returns/.DS_Store", b"x"),
    ]);
    let (package, warnings) = read(&bytes).unwrap();
    assert_eq!(package.folder.as_deref(), Some("returns"));
    assert_eq!(package.document.bytes(), DOC.as_bytes());
    assert_eq!(package.files.len(), 1);
    assert_eq!(package.files[0].path, "scripts/price.js");
    assert_eq!(
        warnings.iter().map(|warning| warning.code).collect::<Vec<_>>(),
        ["ignored_file", "ignored_file"]
    );

    let (package, _) = read(&zip(&[("SKILL.md", DOC.as_bytes()), ("a/b.md", b"x")])).unwrap();
    assert_eq!((package.folder, package.files[0].path.as_str()), (None, "a/b.md"));

    let (_, warnings) = read(&zip(&[("other/SKILL.md", DOC.as_bytes())])).unwrap();
    assert_eq!(warnings[0].code, "name_folder");

    let (package, warnings) = Package::read(DOC.as_bytes(), "SKILL.md", &Limits::default()).unwrap();
    assert_eq!((package.document.name(), package.files.len(), warnings.len()), (Some("returns"), 0, 0));
}

#[test]
fn a_skill_has_one_document() {
    refused(&zip(&[("a/b.md", b"x")]), "no SKILL.md");
    refused(&zip(&[]), "no SKILL.md");
    assert_eq!(refused(&zip(&[("a/skill.md", DOC.as_bytes())]), "capital").as_deref(), Some("a/skill.md"));
    refused(&zip(&[("a/SKILL.md", DOC.as_bytes()), ("b/SKILL.md", DOC.as_bytes())]), "second");
    refused(&zip(&[("SKILL.md", DOC.as_bytes()), ("a/SKILL.md", DOC.as_bytes())]), "second");
    refused(&zip(&[("a/b/SKILL.md", DOC.as_bytes())]), "only folder");
    refused(&zip(&[("a/SKILL.md", DOC.as_bytes()), ("b/x.md", b"x")]), "outside");
    refused(b"PK\x03\x04 this is no zip", "damaged");
    refused(b"", "damaged");
    let broken = zip(&[("a/SKILL.md", b"---\nname: a\nname: b\n---\n")]);
    let PackageError::Invalid { file, line, .. } = read(&broken).unwrap_err() else { panic!("too large") };
    assert_eq!((file.as_deref(), line), (Some("SKILL.md"), Some(3)));
}

#[test]
fn hostile_paths_are_refused() {
    for path in
        ["/etc/x", "C:/x", "../x", "a/../x", "a//x", "./x", "a\\x", "a/x\u{202e}", "a/x\n", "x.", "a /x"]
    {
        let file = refused(&zip(&[("SKILL.md", DOC.as_bytes()), (path, b"x")]), "path");
        assert_eq!(file.as_deref(), Some(path));
        assert!(check_path(path).is_err(), "{path}");
    }
    refused(&zip(&[("SKILL.md", DOC.as_bytes()), (&format!("a/{}", "b".repeat(255)), b"x")]), "255");
    for (one, other) in [
        ("a/x.md", "a/X.md"),
        ("e\u{301}.md", "\u{e9}.md"),
        ("\u{fb01}.md", "fi.md"),
        ("A/x.md", "a/x.md"),
        ("stra\u{df}e.md", "stra\u{1e9e}e.md"),
    ] {
        refused(&zip(&[("SKILL.md", DOC.as_bytes()), (one, b"x"), (other, b"x")]), "differs only");
    }
    refused(&zip(&[("SKILL.md", DOC.as_bytes()), ("a", b"x"), ("a/b", b"x")]), "name of the folder");
    for path in ["SKILL.md", "skill.md", "a/Skill.MD"] {
        assert_eq!(check_path(path), Err(PathFault::Reserved));
    }
    for path in ["a", "scripts/run.js", "a b/\u{e4}.txt", ".hidden", "a/..b"] {
        assert_eq!(check_path(path), Ok(()));
    }
    let two = zip(&[("SKILL.md", DOC.as_bytes()), ("a/one", b"x"), ("a/two", b"y")]);
    refused(&renamed(two, b"a/two", b"a/one"), "same name");
    let latin = zip(&[("SKILL.md", DOC.as_bytes()), ("a/one", b"x")]);
    refused(&renamed(latin, b"a/one", b"a/on\xe9"), "UTF-8");
}

#[test]
fn links_and_encrypted_entries_are_refused() {
    let mut writer = ZipWriter::new(Cursor::new(zip(&[("SKILL.md", DOC.as_bytes())])));
    writer = ZipWriter::new_append(writer.finish().unwrap()).unwrap();
    writer.add_symlink("a/link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    refused(&writer.finish().unwrap().into_inner(), "link");

    // Bit 0 of the flags of both headers.
    let mut bytes = zip(&[("SKILL.md", DOC.as_bytes())]);
    let central = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    bytes[6] |= 1;
    bytes[central + 8] |= 1;
    refused(&bytes, "encrypted");
}

#[test]
fn a_zip_in_a_zip_is_refused() {
    let inner = zip(&[("x", b"x")]);
    refused(&zip(&[("SKILL.md", DOC.as_bytes()), ("assets/a.dat", &inner)]), "another zip");
    refused(&zip(&[("SKILL.md", DOC.as_bytes()), ("assets/a.zip", b"x")]), "another zip");
    read(&zip(&[("SKILL.md", DOC.as_bytes()), ("assets/template.docx", &inner)])).unwrap();
}

#[test]
fn sizes_are_limited_and_must_be_true() {
    too_large(&zip(&[("SKILL.md", DOC.as_bytes()), ("zeros", &vec![0; 1024 * 1024])]), "packed");
    let noise: Vec<u8> = (0_u32..11 * 1024 * 256)
        .flat_map(|at| at.wrapping_mul(2_654_435_761).rotate_left(at % 31).to_le_bytes())
        .collect();
    too_large(&zip(&[("SKILL.md", DOC.as_bytes()), ("noise", &noise)]), "larger");
    let long = format!("{DOC}{}", (0..9000).map(|at| format!("{at:x} words\n")).collect::<String>());
    too_large(&zip(&[("SKILL.md", long.as_bytes())]), "instructions");
    let names: Vec<String> = (0..201).map(|at| format!("files/{at}.md")).collect();
    let mut files: Vec<(&str, &[u8])> = vec![("SKILL.md", DOC.as_bytes())];
    files.extend(names.iter().map(|name| (name.as_str(), b"x".as_slice())));
    too_large(&zip(&files), "200 files");
    files.pop();
    assert_eq!(read(&zip(&files)).unwrap().0.files.len(), 200);

    // The central header announces another size than the data have: in both directions.
    for size in [3_u32, 300] {
        let mut bytes = zip(&[("SKILL.md", DOC.as_bytes())]);
        let central = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
        bytes[central + 24..central + 28].copy_from_slice(&size.to_le_bytes());
        refused(&bytes, "");
    }
    let mut bytes = zip(&[("SKILL.md", DOC.as_bytes())]);
    let central = bytes.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    bytes[central + 16] ^= 1;
    refused(&bytes, "CRC32");
}

fn file() -> impl Strategy<Value = PackageFile> {
    let part = "[a-z][a-z0-9_]{0,7}";
    let path = (part, part, prop_oneof![Just("md"), Just("js"), Just("bin")])
        .prop_map(|(folder, name, ending)| format!("{folder}/{name}.{ending}"));
    let bytes = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "[a-z \n]{0,300}".prop_map(String::into_bytes),
        Just(vec![0; 200_000]),
    ];
    (path, bytes).prop_map(|(path, bytes)| PackageFile { path, bytes })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_package_comes_back_byte_for_byte(
        files in proptest::collection::vec(file(), 0..12),
        front in prop_oneof![Just(""), Just("\u{feff}")],
        newline in prop_oneof![Just("\n"), Just("\r\n")],
        body in any::<String>(),
    ) {
        let mut files = files;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.dedup_by(|one, other| one.path == other.path);
        files.retain(|file| !file.bytes.starts_with(b"PK\x03\x04"));
        let text = format!("{front}---{newline}name: a-b  # c{newline}x: [1,  2]{newline}description:   'd'{newline}---{newline}{body}");
        let document = SkillDocument::parse(text.as_bytes()).unwrap().document;
        let package = Package { document, files, folder: Some("a-b".to_owned()) };
        let zip = package.write().unwrap();
        prop_assert_eq!(&package.write().unwrap(), &zip);
        let (again, _) = read(&zip).unwrap();
        prop_assert_eq!(again.document.bytes(), text.as_bytes());
        prop_assert_eq!(again, package);
    }

    #[test]
    fn no_damaged_zip_panics(at in 0_usize..600, byte in any::<u8>(), cut in 0_usize..600) {
        let mut bytes = zip(&[("a/SKILL.md", DOC.as_bytes()), ("a/b.md", b"text text text"), ("a/c", &[7; 300])]);
        let length = bytes.len();
        bytes[at % length] = byte;
        let _ = read(&bytes);
        bytes.truncate(cut % length);
        let _ = read(&bytes);
    }
}
