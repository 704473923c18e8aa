//! Files: uploads and downloads, compared with a bare handler on the same disk.

use super::{Bench, postgres, spread, whole};
use crate::child::{Child, text};
use crate::http::Server;
use crate::load::{self, Outcome};
use crate::machine::{median, memory, most_memory};
use crate::report::Section;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A size of files to measure.
struct Size {
    name: &'static str,
    bytes: usize,
    connections: usize,
    /// The number of uploads in a round, limited by the space on a disk.
    uploads: u64,
}

const SIZES: [Size; 2] = [
    Size { name: "64 KiB", bytes: 64 << 10, connections: 32, uploads: 4_096 },
    Size { name: "10 MiB", bytes: 10 << 20, connections: 4, uploads: 64 },
];

/// The least accepted ratio of our rate to the bare handler's.
const TARGET: f64 = 0.5;

/// The most anonymous memory that the service may use, in MiB.
const MOST_MEMORY: f64 = 128.0;

pub fn measure(bench: &Bench<'_>) -> Result<Section> {
    let mut section = Section::new("Uploads and downloads, against a bare handler on the same disk");
    one(bench, &mut section, "SQLite", &bench.sqlite("files.db"))?;
    match postgres("svc_bench_files")? {
        Some(database) => one(bench, &mut section, "PostgreSQL", &database)?,
        None => section.note("PostgreSQL was not there: run by `scripts/with-services`."),
    }
    section.note(format!(
        "Each upload is a form with a file that no other upload has. The bare handler is one of actix-web: it writes the body as \
         it comes, syncs the file, renames it and syncs its folder, as the service does with its objects, and it sends files in \
         pieces of 64 KiB. It does not read the form, takes no digest and has no database. Downloads are of one file at its \
         signed link, so it is in memory. {} connections for files of {}, {} for those of {}.",
        SIZES[0].connections, SIZES[0].name, SIZES[1].connections, SIZES[1].name
    ));
    Ok(section)
}

/// The servers of both sides.
struct Sides<'a> {
    bench: &'a Bench<'a>,
    name: &'a str,
    service: Child,
    bare: Child,
    /// The folder of each side's files.
    folders: [PathBuf; 2],
}

fn one(bench: &Bench<'_>, section: &mut Section, name: &str, database: &str) -> Result<()> {
    let folders = ["ours", "bare"].map(|side| bench.folder.path().join(format!("files-{name}-{side}")));
    let [ours, bare] = [&folders[0], &folders[1]].map(|folder| folder.display().to_string());
    let sides = Sides {
        bench,
        name,
        service: Child::start(&["serve-svc", "--database", database, "--files", &ours])?,
        bare: Child::start(&["serve-disk", "--folder", &bare])?,
        folders,
    };
    let service = sides.service.id();
    let before = memory(service, "RssAnon")?;
    let (done, most) =
        most_memory(service, || SIZES.iter().try_for_each(|size| sides.measure(section, size)))?;
    let () = done;
    section.against(
        format!("{name}: memory of its own before / at most, MiB"),
        format!("{before:.0} / {most:.0}"),
        &format!("≤ {MOST_MEMORY}"),
        most <= MOST_MEMORY,
    );
    Ok(())
}

impl Sides<'_> {
    fn measure(&self, section: &mut Section, size: &Size) -> Result<()> {
        let upload = load::Arguments {
            file_bytes: Some(size.bytes),
            requests: Some(if self.bench.plan.quick { 2 * size.connections as u64 } else { size.uploads }),
            ..self.bench.load(&self.service, "POST /api/v1/files", "", size.connections)?
        };
        let to_bare = |load: &load::Arguments, target: &str| -> Result<load::Arguments> {
            Ok(load::Arguments {
                address: text(&self.bare.hello, "address")?.to_owned(),
                process: self.bare.id(),
                target: target.to_owned(),
                keys: Vec::new(),
                ..load.clone()
            })
        };
        let bare_upload = to_bare(&upload, "POST /files")?;
        // The first uploads are the files to download.
        load::Arguments { requests: Some(1), connections: 1, ..upload.clone() }.spawn()?;
        let bare_file = self.first_of_bare()?;
        load::Arguments { requests: Some(1), connections: 1, ..bare_upload.clone() }.spawn()?;
        let download = load::Arguments {
            keys: Vec::new(),
            ..self.bench.load(&self.service, &format!("GET {}", self.link()?), "", size.connections)?
        };
        let bare_download = to_bare(&download, &format!("GET /files/{bare_file}"))?;
        self.compare(section, &format!("download of {}", size.name), size, [&download, &bare_download])?;
        self.compare(section, &format!("upload of {}", size.name), size, [&upload, &bare_upload])
    }

    /// Returns the number that the bare handler assigns to the next file.
    fn first_of_bare(&self) -> Result<u64> {
        let server = Server { address: text(&self.bare.hello, "address")?.to_owned(), token: String::new() };
        let made = server.ask("POST", "/files", None)?;
        Ok(made.get("number").and_then(Value::as_u64).context("no number")? + 1)
    }

    /// Returns the path of the newest file's signed link.
    fn link(&self) -> Result<String> {
        let token = super::keys(&self.service).into_iter().next().context("the service made no key")?;
        let server = Server { address: text(&self.service.hello, "address")?.to_owned(), token };
        let newest = server.ask("GET", "/api/v1/media?limit=1", None)?;
        let link = text(newest.pointer("/data/0").context("no file")?, "signed_url")?;
        let path = link.find("/d/").and_then(|place| link.get(place..)).context("the link leads nowhere")?;
        Ok(path.to_owned())
    }

    /// Measures a load on both sides in turns.
    fn compare(
        &self,
        section: &mut Section,
        what: &str,
        size: &Size,
        sides: [&load::Arguments; 2],
    ) -> Result<()> {
        let mut outcomes = [Vec::new(), Vec::new()];
        for _ in 0..self.bench.plan.rounds {
            for (load, outcomes) in sides.iter().zip(&mut outcomes) {
                let outcome = load.spawn()?;
                ensure!(
                    outcome.done() == outcome.total(),
                    "{what}: not every answer was a success: {outcome:?}"
                );
                outcomes.push(outcome);
            }
            if sides[0].file_bytes.is_some() {
                self.folders.iter().try_for_each(|folder| empty(folder))?;
            }
        }
        let rate = |outcomes: &[Outcome]| median(&outcomes.iter().map(Outcome::rate).collect::<Vec<_>>());
        let shown = |rate: f64| format!("{} / {}", whole(rate * size.bytes as f64 / 1e6), whole(rate));
        let [ours, bare] = [&outcomes[0], &outcomes[1]].map(|outcomes| shown(rate(outcomes)));
        section.state(
            format!("{}: {what}: MB/s / requests/s, ours; bare", self.name),
            format!("{ours}; {bare}"),
        );
        let ratios: Vec<f64> =
            outcomes[0].iter().zip(&outcomes[1]).map(|(ours, bare)| ours.rate() / bare.rate()).collect();
        section.against(
            format!("{}: {what}: ours ÷ bare", self.name),
            spread(&ratios, |ratio| format!("{ratio:.2}")),
            &format!("≥ {TARGET}"),
            median(&ratios) >= TARGET,
        );
        Ok(())
    }
}

/// Deletes all files in a folder and its subfolders, so that the disk does not fill up.
fn empty(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() { empty(&entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}
