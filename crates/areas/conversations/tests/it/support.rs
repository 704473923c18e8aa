//! A service with a channel to a simulated network.

use channels::ChannelSettings;
use std::ops::Deref;
use testkit::{ChannelApp, Kind, TestApp};

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

    /// A channel with settings of its own.
    pub async fn with_settings(kind: Kind, change: impl FnOnce(&mut ChannelSettings)) -> Self {
        Self(ChannelApp::with_settings(kind, change).await)
    }

    /// The same around a service.
    pub async fn around(app: TestApp, change: impl FnOnce(&mut ChannelSettings)) -> Self {
        Self(ChannelApp::around(app, change).await)
    }
}
