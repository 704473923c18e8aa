//! A service with a channel to a simulated network.

use channels::ChannelSettings;
use std::ops::Deref;
use testkit::{ChannelApp, Kind};

/// A service whose channel is connected to a simulated network, with the steps that these tests repeat.
pub struct Desk(ChannelApp);

impl Deref for Desk {
    type Target = ChannelApp;

    fn deref(&self) -> &ChannelApp {
        &self.0
    }
}

impl Desk {
    pub async fn open(kind: Kind) -> Self {
        Self(ChannelApp::open(kind).await)
    }

    /// The same with other settings of the channel.
    pub async fn with_settings(kind: Kind, change: impl FnOnce(&mut ChannelSettings)) -> Self {
        Self(ChannelApp::with_settings(kind, change).await)
    }

    /// A service with the template `prices`, which has a file above its text.
    pub async fn with_prices(kind: Kind) -> Self {
        Self(ChannelApp::with_prices(kind).await)
    }
}
