//! `svc`: the whole service in one program.

fn main() -> std::process::ExitCode {
    server::cli::main()
}
