//! The one file with `unsafe`: calls of the operating system that have no safe wrapper, and the engine's allocator.
#![expect(
    unsafe_code,
    reason = "the declared exception (decision 53): fork, descriptors, exit and the engine's allocator"
)]

use rquickjs::allocator::Allocator;
use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;

/// Both sides of a fork.
pub enum Forked {
    /// The new process.
    Child,
    /// The process that forked, with the number of the new one.
    Parent(rustix::process::Pid),
}

/// Forks the calling process.
///
/// # Errors
/// Those of `fork(2)`.
pub fn fork() -> std::io::Result<Forked> {
    // SAFETY: only the zygote forks, and it has one thread (`child::zygote` checks that), so no lock is held by a thread that
    // the new process lacks.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child),
        pid => rustix::process::Pid::from_raw(pid)
            .filter(|_| pid > 0)
            .map(Forked::Parent)
            .ok_or_else(std::io::Error::last_os_error),
    }
}

/// Closes each descriptor from `first` on.
pub fn close_from(first: RawFd) {
    let first = libc::c_uint::try_from(first).unwrap_or(libc::c_uint::MAX);
    // SAFETY: the zygote and its workers call it before they own a descriptor of that range: what is closed was inherited.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    if closed != 0 {
        // Kernels before 5.9 lack the call.
        for descriptor in first..4096 {
            // SAFETY: as above.
            unsafe { libc::close(libc::c_int::try_from(descriptor).unwrap_or(-1)) };
        }
    }
}

/// Makes `descriptor` the process's descriptor 0.
///
/// # Errors
/// Those of `dup2(2)`.
pub fn make_first(descriptor: OwnedFd) -> std::io::Result<()> {
    use std::os::fd::{AsRawFd, IntoRawFd};
    // SAFETY: nothing in the process owns descriptor 0: the standard library only borrows it.
    if unsafe { libc::dup2(descriptor.as_raw_fd(), 0) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // The caller closes it with all others.
    let _ = descriptor.into_raw_fd();
    Ok(())
}

/// The process's descriptor 0: the socket to the parent.
#[must_use]
pub fn first() -> BorrowedFd<'static> {
    // SAFETY: the zygote and its workers never close descriptor 0.
    unsafe { BorrowedFd::borrow_raw(0) }
}

/// Ends the process at once: no destructors, no handlers, no flushing.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` takes any number and does not return.
    unsafe { libc::_exit(code) }
}

/// Ends waiting for children: `SIGCHLD` interrupts system calls from now on.
pub fn interrupt_on_child() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: the structure is plain data for which zeroes are valid, and the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_NOCLDSTOP;
        libc::sigaction(libc::SIGCHLD, &raw const action, std::ptr::null_mut());
    }
}

/// Draws the canary anew with which compiled C code notices an overwritten stack: after a fork it is the zygote's.
///
/// No function that has stored the old canary may return after this, so only what ends with the process calls it.
#[inline(always)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_env = "gnu")),
    expect(clippy::missing_const_for_fn, reason = "empty there")
)]
pub fn renew_canary(_random: u64) {
    #[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
    // SAFETY: glibc keeps the canary at this place of the thread's block. Its first byte stays zero, as glibc has it, so that
    // a string cannot reach over it.
    unsafe {
        std::arch::asm!("mov qword ptr fs:[0x28], {0}", in(reg) _random & !0xff, options(nostack, preserves_flags));
    }
}

/// How much memory the engine holds, and held at most. All in bytes.
#[derive(Debug, Default)]
pub struct Meter {
    used: Cell<usize>,
    peak: Cell<usize>,
}

impl Meter {
    /// The most that was held at a time.
    pub fn peak(&self) -> usize {
        self.peak.get()
    }
}

/// The engine's memory: libc's, counted, with a limit.
///
/// An allocation beyond the limit does not fail: it ends the process through `exhausted`. The engine's paths after a failed
/// allocation are where several of its published faults are, so they never run.
pub struct Metered {
    meter: Rc<Meter>,
    limit: usize,
    exhausted: fn() -> !,
}

impl Metered {
    /// An allocator with at most `limit` bytes. `exhausted` is called when they do not suffice.
    pub fn new(meter: Rc<Meter>, limit: usize, exhausted: fn() -> !) -> Self {
        Self { meter, limit, exhausted }
    }

    fn admit(&self, size: usize) {
        if self.meter.used.get().saturating_add(size) > self.limit {
            (self.exhausted)();
        }
    }

    fn count(&self, pointer: *mut u8) -> *mut u8 {
        if pointer.is_null() {
            // The limit of the process's address space.
            (self.exhausted)();
        }
        // SAFETY: `pointer` was just allocated by libc.
        let size = unsafe { <Self as Allocator>::usable_size(pointer) };
        let used = self.meter.used.get().saturating_add(size);
        self.meter.used.set(used);
        self.meter.peak.set(self.meter.peak.get().max(used));
        pointer
    }

    fn discount(&self, size: usize) {
        self.meter.used.set(self.meter.used.get().saturating_sub(size));
    }
}

// SAFETY: all memory is libc's, which is aligned for every type; sizes are those that libc says.
unsafe impl Allocator for Metered {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.admit(size);
        // SAFETY: `malloc` takes any size; null is handled.
        self.count(unsafe { libc::malloc(size.max(1)) }.cast())
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        self.admit(count.saturating_mul(size));
        // SAFETY: `calloc` takes any numbers and checks their product; null is handled.
        self.count(unsafe { libc::calloc(count.max(1), size.max(1)) }.cast())
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        // SAFETY: the engine hands back what this allocator gave it.
        unsafe {
            self.discount(Self::usable_size(pointer));
            libc::free(pointer.cast());
        }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, size: usize) -> *mut u8 {
        if pointer.is_null() {
            return self.alloc(size);
        }
        // SAFETY: the engine hands back what this allocator gave it; null is handled.
        unsafe {
            let before = Self::usable_size(pointer);
            self.admit(size.saturating_sub(before));
            let moved = libc::realloc(pointer.cast(), size.max(1));
            if !moved.is_null() {
                self.discount(before);
            }
            self.count(moved.cast())
        }
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        // SAFETY: `pointer` is live memory of libc.
        unsafe { libc::malloc_usable_size(pointer.cast()) }
    }
}

/// Copies the bytes of an array; `None` if its buffer was taken away.
pub fn bytes_of(array: &rquickjs::TypedArray<'_, u8>) -> Option<Vec<u8>> {
    // SAFETY: no code of the program runs until the copy is made.
    unsafe { array.as_bytes() }.map(<[u8]>::to_vec)
}
