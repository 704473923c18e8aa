//! A worker's end of the socket to the parent.

use crate::sys;
use crate::wire::PREFIX;
use rustix::io::Errno;

/// A message as it came: its kind and its fields.
#[derive(Debug)]
pub struct Message {
    /// The kind.
    pub kind: u8,
    /// The fields.
    pub fields: Vec<u8>,
}

/// The socket to the parent: descriptor 0, the only one that a worker has.
#[derive(Debug, Clone, Copy)]
pub struct Channel;

impl Channel {
    /// Reads the next message; `None` when the parent has gone.
    #[must_use]
    pub fn read(self) -> Option<Message> {
        // No message is without a kind, so both come with one system call.
        let mut head = [0; PREFIX + 1];
        self.fill(&mut head)?;
        let (prefix, kind) = head.split_first_chunk::<PREFIX>()?;
        let length = usize::try_from(u32::from_le_bytes(*prefix)).ok()?;
        let mut fields = vec![0; length.checked_sub(1)?];
        self.fill(&mut fields)?;
        Some(Message { kind: *kind.first()?, fields })
    }

    fn fill(self, mut buffer: &mut [u8]) -> Option<()> {
        while !buffer.is_empty() {
            match rustix::io::read(sys::first(), &mut *buffer) {
                Ok(0) => return None,
                Ok(count) => buffer = buffer.get_mut(count..)?,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// Writes bytes. If the parent has gone, the worker ends.
    pub fn write(self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match rustix::io::write(sys::first(), bytes) {
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(_) => sys::exit_now(0),
            }
        }
    }
}
