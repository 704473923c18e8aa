//! `svc`: the whole service in one program.

/// What all memory comes from, SQLite's too: the system's own allocator spends a fifth more of a write's time. Without huge
/// pages, which would keep half as much again resident.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Before anything else, because the sandbox's processes may have no thread and no open file.
    sandbox::zygote_if_asked();
    server::cli::main()
}
