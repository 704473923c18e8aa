//! A worker: reads its program, then calls, until the parent closes the socket.

use super::channel::Channel;
use super::engine;
use super::task::{program, task};
use crate::sys;

/// Serves one program's calls, then ends the process. It is what a zygote runs in its workers.
pub fn serve(channel: Channel) -> ! {
    let Some(loaded) = channel.read().and_then(|message| program(&message).ok()) else { sys::exit_now(0) };
    while let Some(message) = channel.read() {
        let Ok(task) = task(&message) else { sys::exit_now(2) };
        engine::run(channel, &loaded, &task);
    }
    sys::exit_now(0)
}
