//! Streaming of exports: items are read in pages, at the pace of the client, in constant memory.

use super::labels::Labels;
use super::print::Lines;
use super::{Export, ExportFormat};
use crate::imports::Target;
use bytes::Bytes;
use files::{Generator, attachment, guarded};
use model::{Error, Result};
use operation::{BoxFuture, RawAnswer, RawRequest};
use query::{Budget, Planner, RelatedRecords};
use records::links;
use records::rows::ItemRow;
use records::sets;
use records::shape::{self, Kind, Shape, Shapes};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Db, Read};
use tokio::sync::{Semaphore, mpsc};

/// The maximum number of items per page.
const PAGE: usize = 500;

/// The minimum number of items per page, and the size of the first page, when the size of items is not known yet.
const FEW: usize = 20;

/// The approximate number of bytes of items per page.
const READ: usize = 512 * 1024;

/// The approximate number of bytes per chunk of output.
const CHUNK: usize = 128 * 1024;

/// The maximum duration of a snapshot. While one is open, SQLite cannot checkpoint its write-ahead log.
const SNAPSHOT: Duration = Duration::from_secs(300);

/// The maximum number of exports with a snapshot, which occupies a connection. Others read each page in a transaction
/// of its own, so they may contain changes made during the export.
const SNAPSHOTS: usize = 2;

/// The service that sends exports.
#[derive(Clone)]
pub struct Exporter {
    /// The database.
    pub db: Db,
    /// The shapes of collections.
    pub shapes: Arc<Shapes>,
    targets: Arc<[Arc<dyn Target>]>,
    planner: Arc<Planner>,
    snapshots: Arc<Semaphore>,
}

impl Exporter {
    /// Creates an exporter. Exports have no budget, because only their client waits for them.
    pub fn new(db: Db, shapes: Arc<Shapes>, targets: &[Arc<dyn Target>]) -> Self {
        let planner = Planner::new(db.clone());
        planner.set_budget(Budget {
            rows: usize::MAX,
            bytes: usize::MAX,
            timeout: Duration::from_secs(3600),
        });
        let snapshots = Arc::new(Semaphore::new(SNAPSHOTS));
        Self { db, shapes, targets: targets.into(), planner: Arc::new(planner), snapshots }
    }

    /// Returns the target for a kind of records.
    fn target(&self, kind: &Kind) -> Result<&dyn Target> {
        let target = self.targets.iter().find(|target| target.kind().number == kind.number);
        target.map(|target| &**target).ok_or_else(|| Error::internal("no target gives exports of a kind"))
    }
}

impl Generator for Exporter {
    fn send(&self, what: Value, request: RawRequest) -> BoxFuture<Result<RawAnswer>> {
        let exporter = self.clone();
        Box::pin(async move {
            send(exporter, serde_json::from_value(what).map_err(Error::internal)?, &request).await
        })
    }
}

/// The progress of an export.
struct Reader {
    exporter: Exporter,
    export: Export,
    /// The position of the last item sent; `None` before the first.
    after: Option<Vec<u8>>,
    begun: bool,
    over: bool,
    /// The size of the next page.
    most: usize,
}

/// Responds to a request for an export.
///
/// # Errors
/// Errors found before the first byte is sent, for example a deleted collection or a filter whose fields were
/// deleted.
async fn send(exporter: Exporter, export: Export, request: &RawRequest) -> Result<RawAnswer> {
    let media_type = match export.format {
        ExportFormat::Csv => "text/csv; charset=utf-8",
        ExportFormat::Jsonl => "application/x-ndjson",
    };
    let extension = if export.format == ExportFormat::Csv { "csv" } else { "jsonl" };
    let noun = exporter.shapes.kind_of(export.collection)?.noun;
    let set = if export.collection.0 > 0 { format!("-{}", export.collection) } else { String::new() };
    let name = format!("{noun}s{set}.{extension}");
    let mut reader =
        Reader { exporter: exporter.clone(), export, after: None, begun: false, over: false, most: FEW };
    // Read the first page before the response begins, so that errors still become error responses.
    let first = exporter.db.read(move |read| {
        let bytes = reader.page(read)?;
        Ok((reader, bytes))
    });
    let (reader, first) = first.await?;
    let answer = guarded(RawAnswer::status(200))
        .header("cache-control", "no-store")
        .header("content-disposition", attachment("attachment", &name));
    if request.method == "HEAD" {
        return Ok(answer.body(media_type, Vec::new()));
    }
    if reader.over {
        return Ok(answer.body(media_type, first));
    }
    let (sender, mut receiver) = mpsc::channel::<std::io::Result<Bytes>>(2);
    tokio::spawn(read_on(reader, sender));
    let head = futures::stream::iter([Ok(Bytes::from(first))]);
    let rest = futures::stream::poll_fn(move |context| receiver.poll_recv(context));
    Ok(answer.chunks(media_type, futures::StreamExt::chain(head, rest)))
}

/// Sends pages until the end, or until the client disconnects. An error aborts the response.
async fn read_on(mut reader: Reader, sender: mpsc::Sender<std::io::Result<Bytes>>) {
    let exporter = reader.exporter.clone();
    let permit = exporter.snapshots.clone().try_acquire_owned().ok();
    let began = Instant::now();
    while !reader.over {
        let (pipe, in_snapshot) = (sender.clone(), permit.is_some() && began.elapsed() < SNAPSHOT);
        let read = exporter.db.read(move |read| {
            if in_snapshot {
                read.in_snapshot(|read| reader.pages(read, &pipe, SNAPSHOT))?;
            } else {
                // One page per transaction, so that the connection is free in between.
                reader.pages(read, &pipe, Duration::ZERO)?;
            }
            Ok(reader)
        });
        match read.await {
            Ok(gone_on) => reader = gone_on,
            Err(error) => {
                tracing::error!(?error, "an export broke off");
                let _ = sender.send(Err(std::io::Error::other("the export failed"))).await;
                return;
            }
        }
        if sender.is_closed() {
            return;
        }
    }
}

impl Reader {
    /// Sends pages for about `patience`, and at least one.
    fn pages(
        &mut self,
        read: &mut Read,
        pipe: &mpsc::Sender<std::io::Result<Bytes>>,
        patience: Duration,
    ) -> Result<()> {
        let began = Instant::now();
        loop {
            let bytes = self.page(read)?;
            // Sending fails when the client has disconnected.
            let is_taken = bytes.is_empty() || pipe.blocking_send(Ok(Bytes::from(bytes))).is_ok();
            if self.over || !is_taken || began.elapsed() >= patience {
                return Ok(());
            }
        }
    }

    /// Reads and formats the next page.
    fn page(&mut self, read: &mut Read) -> Result<Vec<u8>> {
        let export = &self.export;
        let shapes = &self.exporter.shapes;
        let kind = shapes.kind_of(export.collection)?;
        let shape = if export.collection.0 > 0 {
            shape::for_read(read, shapes, export.workspace, export.collection)?
        } else {
            sets::for_read(read, shapes, export.workspace, kind)?
        };
        let related =
            RelatedRecords { shapes: shapes.clone(), planner: self.exporter.planner.clone(), key: None };
        let parsed = self.exporter.target(kind)?.query(read, &shape, export.params.clone(), &related)?;
        let visible: Option<Vec<String>> = parsed.visible.as_ref().map(|subjects| {
            subjects.iter().filter_map(|subject| subject.name(&shape)).map(str::to_owned).collect()
        });
        let mut lines = Lines::new(&shape, export, visible.as_deref(), !self.begun)?;
        self.begun = true;
        while lines.len() < CHUNK {
            let after = self.after.as_deref();
            let page = parsed.query.page(read, &self.exporter.planner, &shape, after, self.most)?;
            let found = page.found.iter().map(|found| &found.row);
            // Without this filter an export in ascending order might never end.
            let found: Vec<&ItemRow> = found.filter(|row| row.created_at <= export.as_of()).collect();
            if export.labels {
                print_labels(read, shapes, &shape, &mut lines, &found)?;
            } else {
                for row in found {
                    lines.print(row, |row, field| links::targets_of(read, row, field))?;
                }
            }
            let is_last = page.found.len() < self.most;
            let bytes: usize = page.found.iter().map(|found| found.row.data.as_str().len()).sum();
            // An item can have up to 256 KB, so adapt the size of the next page.
            self.most = (READ * self.most / bytes.max(1)).clamp(FEW, PAGE);
            // A page may be empty although more follow, so keep the old position then.
            self.after = page.found.into_iter().last().map(|found| found.place).or(self.after.take());
            if is_last {
                self.over = true;
                break;
            }
        }
        lines.into_bytes()
    }
}

/// Formats items with labels instead of values.
fn print_labels(
    read: &mut Read,
    shapes: &Shapes,
    shape: &Shape,
    lines: &mut Lines<'_>,
    found: &[&ItemRow],
) -> Result<()> {
    let mut all = Vec::with_capacity(found.len());
    for row in found {
        all.push(lines.values(row, |row, field| links::targets_of(read, row, field))?);
    }
    let labels = Labels::of(read, shapes, shape, lines.fields(), &all)?;
    for (row, mut data) in found.iter().zip(all) {
        labels.put(lines.fields(), &mut data);
        lines.write(row, data)?;
    }
    Ok(())
}
