//! The baseline for files: a bare actix-web handler that streams request bodies to files, and sends files back in
//! pieces. Files are as durable as those of the service: each is synced and renamed, and its folder is synced.

use actix_web::body::SizedStream;
use actix_web::error::ErrorInternalServerError as failed;
use actix_web::web::{self, Bytes, Data};
use actix_web::{App, HttpResponse, HttpServer, Result};
use futures::{StreamExt, stream};
use serde_json::json;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of bytes to read of a file at once.
const PIECE: u64 = 64 << 10;

#[derive(clap::Args)]
pub struct Arguments {
    /// The folder of the files.
    #[arg(long)]
    folder: PathBuf,
}

/// The folder of the files, and their number.
struct Shelf {
    folder: PathBuf,
    count: AtomicU64,
}

pub async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    fs::create_dir_all(&arguments.folder)?;
    let shelf = Data::new(Shelf { folder: arguments.folder, count: AtomicU64::new(0) });
    let app = move || {
        App::new()
            .app_data(shelf.clone())
            .route("/files", web::post().to(receive))
            .route("/files/{number}", web::get().to(send))
    };
    let server = HttpServer::new(app).bind("127.0.0.1:0")?;
    let address = server.addrs().first().map(ToString::to_string);
    println!("{}", json!({ "address": address }));
    Ok(server.run().await?)
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(number.to_string())
}

async fn receive(shelf: Data<Shelf>, mut body: web::Payload) -> Result<HttpResponse> {
    let number = shelf.count.fetch_add(1, Ordering::Relaxed);
    let path = path(&shelf.folder, number);
    let unfinished = path.with_extension("part");
    let begun = unfinished.clone();
    let mut file = web::block(move || File::create(begun)).await?.map_err(failed)?;
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        file = web::block(move || file.write_all(&bytes).map(|()| file)).await?.map_err(failed)?;
    }
    let done = web::block(move || {
        file.sync_all()?;
        fs::rename(unfinished, path)?;
        File::open(&shelf.folder)?.sync_all()
    });
    done.await?.map_err(failed)?;
    Ok(HttpResponse::Created().json(json!({ "number": number })))
}

async fn send(shelf: Data<Shelf>, number: web::Path<u64>) -> Result<HttpResponse> {
    let path = path(&shelf.folder, number.into_inner());
    let opened = web::block(move || {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok::<_, std::io::Error>((file, size))
    });
    let (file, size) = opened.await?.map_err(failed)?;
    let pieces = stream::try_unfold((file, 0), move |(file, sent)| async move {
        if sent == size {
            return Ok::<_, actix_web::Error>(None);
        }
        let read = web::block(move || {
            let length = PIECE.min(size - sent);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
            file.read_exact_at(&mut bytes, sent)?;
            Ok::<_, std::io::Error>((Bytes::from(bytes), (file, sent + length)))
        });
        Ok(Some(read.await?.map_err(failed)?))
    });
    Ok(HttpResponse::Ok().body(SizedStream::new(size, Box::pin(pieces))))
}
