//! The files of the bundle. Written by `scripts/build-dashboard`.

/// The page, in which the names of files stand behind `./assets/`.
pub(super) const INDEX: &str = include_str!("../../ui/dist/index.html");

/// The name and content of each file.
#[rustfmt::skip]
pub(super) const FILES: &[(&str, &[u8])] = &[
    ("Billing.css", include_bytes!("../../ui/dist/assets/Billing.css")),
    ("Billing.js", include_bytes!("../../ui/dist/assets/Billing.js")),
    ("Business.css", include_bytes!("../../ui/dist/assets/Business.css")),
    ("Business.js", include_bytes!("../../ui/dist/assets/Business.js")),
    ("Events.css", include_bytes!("../../ui/dist/assets/Events.css")),
    ("Events.js", include_bytes!("../../ui/dist/assets/Events.js")),
    ("Home.css", include_bytes!("../../ui/dist/assets/Home.css")),
    ("Home.js", include_bytes!("../../ui/dist/assets/Home.js")),
    ("Team.js", include_bytes!("../../ui/dist/assets/Team.js")),
    ("Usage.css", include_bytes!("../../ui/dist/assets/Usage.css")),
    ("Usage.js", include_bytes!("../../ui/dist/assets/Usage.js")),
    ("Webhooks.css", include_bytes!("../../ui/dist/assets/Webhooks.css")),
    ("Webhooks.js", include_bytes!("../../ui/dist/assets/Webhooks.js")),
    ("index.css", include_bytes!("../../ui/dist/assets/index.css")),
    ("index.js", include_bytes!("../../ui/dist/assets/index.js")),
    ("lib.css", include_bytes!("../../ui/dist/assets/lib.css")),
    ("lib.js", include_bytes!("../../ui/dist/assets/lib.js")),
    ("svelte.js", include_bytes!("../../ui/dist/assets/svelte.js")),
];
