//! The duration of audio and video.

use crate::objects::Objects;
use lofty::config::{ParseOptions, ParsingMode};
use lofty::file::AudioFile;
use lofty::probe::Probe;
use object_store::ObjectStoreExt;
use object_store::buffered::BufReader;
use object_store::path::Path;
use tokio_util::io::SyncIoBridge;

/// Returns the duration of a stored file in milliseconds. Supports AAC, AIFF, FLAC, MP3, MP4 (M4A, MOV), Ogg (Opus,
/// Vorbis) and WAV. Returns `None` for other formats, damaged files and video without sound.
pub(crate) async fn duration_ms(objects: &Objects, path: &Path) -> Option<i64> {
    let meta = objects.head(path).await.ok()?;
    let reader = BufReader::with_capacity(objects.store(), &meta, 64 << 10);
    // Parsing blocks the thread. Errors are ignored: a damaged file must not fail the upload.
    let read = tokio::task::spawn_blocking(move || {
        let options =
            ParseOptions::new().read_tags(false).read_cover_art(false).parsing_mode(ParsingMode::Relaxed);
        let reader = std::io::BufReader::new(SyncIoBridge::new(reader));
        let probe = Probe::new(reader).options(options).guess_file_type().ok()?;
        let duration = probe.read().ok()?.properties().duration();
        i64::try_from(duration.as_millis()).ok().filter(|duration| *duration > 0)
    });
    read.await.ok().flatten()
}
