//! The files of the application, as they are sent.

use super::files::{FILES, INDEX};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{LazyLock, OnceLock};

/// Stands in `index.html` before the name of each file.
const ASSETS: &str = "./assets/";

pub(super) static BUNDLE: LazyLock<Bundle> = LazyLock::new(Bundle::new);

/// One file.
pub(super) struct Asset {
    plain: &'static [u8],
    /// Written when the first browser asks, once for the life of the program.
    gzipped: OnceLock<Bytes>,
    /// The type, by the name's ending.
    pub content_type: &'static str,
}

impl Asset {
    fn new(name: &str, plain: &'static [u8]) -> Self {
        let content_type = match name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        };
        Self { plain, gzipped: OnceLock::new(), content_type }
    }

    /// Returns the bytes as they are.
    pub fn plain(&self) -> Bytes {
        Bytes::from_static(self.plain)
    }

    /// Returns the bytes compressed by gzip, or as they are if that fails.
    pub fn gzipped(&self) -> Option<Bytes> {
        if let Some(bytes) = self.gzipped.get() {
            return Some(bytes.clone());
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(self.plain).ok()?;
        let bytes = Bytes::from(encoder.finish().ok()?);
        Some(self.gzipped.get_or_init(|| bytes).clone())
    }
}

/// All files, under one digest: a page never mixes files of two versions.
pub(super) struct Bundle {
    digest: String,
    assets: BTreeMap<&'static str, Asset>,
}

impl Bundle {
    fn new() -> Self {
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        context.update(INDEX.as_bytes());
        for (name, bytes) in FILES {
            context.update(&(name.len() as u64).to_le_bytes());
            context.update(name.as_bytes());
            context.update(&(bytes.len() as u64).to_le_bytes());
            context.update(bytes);
        }
        let digest = URL_SAFE_NO_PAD.encode(context.finish().as_ref().get(..12).unwrap_or_default());
        let assets = FILES.iter().map(|(name, bytes)| (*name, Asset::new(name, bytes))).collect();
        Self { digest, assets }
    }

    /// Returns the digest of all files.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns a file of this bundle by its path below `/app/assets/`: the digest and the name.
    pub fn asset(&self, path: &str) -> Option<&Asset> {
        let name = path.strip_prefix(self.digest.as_str())?.strip_prefix('/')?;
        self.assets.get(name)
    }

    /// Returns the page. `app` is the path of `/app/` below the host.
    pub fn index(&self, app: &str) -> String {
        INDEX.replace(ASSETS, &format!("{app}assets/{}/", self.digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read;

    #[test]
    fn the_page_loads_only_files_of_the_bundle() {
        let page = BUNDLE.index("/app/");
        assert!(!page.contains("./"), "{page}");
        let mut links = 0;
        for (_, rest) in
            page.match_indices("/app/assets/").map(|(at, prefix)| page.split_at(at + prefix.len()))
        {
            let path = rest.split('"').next().unwrap();
            assert!(BUNDLE.asset(path).is_some(), "{path}");
            links += 1;
        }
        assert!(links >= 2, "{page}");
    }

    #[test]
    fn compressed_files_have_the_same_content() {
        for asset in BUNDLE.assets.values() {
            let compressed = asset.gzipped().unwrap();
            let mut content = Vec::new();
            GzDecoder::new(compressed.as_ref()).read_to_end(&mut content).unwrap();
            assert_eq!(content, asset.plain);
        }
    }
}
