//! `svc-bench`: measures the speed and the memory of the service, and writes docs/benchmarks.md.
//!
//! `make bench` runs it. Server, load generator and model stub run in separate processes, so that their processor
//! times can be told apart. Measurements that are compared alternate within one run.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

mod child;
mod disk;
mod floor;
mod http;
mod load;
mod machine;
mod measure;
mod members;
mod network;
mod receiver;
mod report;
mod service;
mod stub;

use clap::{Parser, Subcommand};
use std::path::PathBuf;

#[derive(Parser)]
#[command(name = "svc-bench", about = "Measures the service. Without a command: everything, in one run.")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    plan: Plan,
}

/// The parts to measure, and for how long.
#[derive(clap::Args)]
struct Plan {
    /// Rounds of each measurement. The report states the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds that a round measures, after half a second of warming up.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Few and short rounds, to test the benchmark itself. Writes no document.
    #[arg(long)]
    quick: bool,
    /// Measure only these parts.
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<measure::Part>,
    /// The number of items for the part `queries`, 100000 if not given. Separate several sizes by commas.
    #[arg(long, value_delimiter = ',')]
    items: Vec<u32>,
    /// The seed of its items and queries.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of its queries.
    #[arg(long, default_value_t = 40)]
    queries: usize,
    /// The number of contacts for the part `contacts`, 100000 if not given. Separate several sizes by commas.
    #[arg(long, value_delimiter = ',')]
    contacts: Vec<u32>,
    /// The number of recipients for the part `broadcasts`.
    #[arg(long, default_value_t = 1_000_000)]
    recipients: u64,
    /// The document in which the measured parts are replaced.
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// The file of the embedded model.
    #[arg(long, value_name = "FILE", default_value = ".cache/models/smollm2-135m-instruct.gguf")]
    model: PathBuf,
    /// A Python with llama-cpp-python, to compare the embedded model with llama.cpp.
    #[arg(long, env = "LLAMA_PYTHON", value_name = "PROGRAM", default_value = "python3")]
    llama_python: String,
}

#[derive(Subcommand)]
enum Command {
    /// The floor: a bare actix-web handler that answers with given headers and body.
    #[command(hide = true)]
    ServeFloor(floor::Arguments),
    /// A bare actix-web handler that receives and sends files.
    #[command(hide = true)]
    ServeDisk(disk::Arguments),
    /// The whole service, with a new workspace and key.
    #[command(hide = true)]
    ServeSvc(service::Arguments),
    /// A model server that answers at once.
    #[command(hide = true)]
    ServeStub,
    /// A webhook endpoint that answers at once.
    #[command(hide = true)]
    ServeReceiver,
    /// A chat network.
    #[command(hide = true)]
    ServeNetwork,
    /// The load generator.
    #[command(hide = true)]
    Load(load::Arguments),
}

fn main() -> anyhow::Result<()> {
    // Before anything else: the sandbox executes this program again.
    sandbox::zygote_if_asked();
    let cli = Cli::parse();
    match cli.command {
        Some(Command::ServeFloor(arguments)) => {
            actix_web::rt::System::new().block_on(floor::serve(arguments))
        }
        Some(Command::ServeDisk(arguments)) => actix_web::rt::System::new().block_on(disk::serve(arguments)),
        Some(Command::ServeSvc(arguments)) => {
            let runs = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            let served =
                actix_web::rt::System::new().block_on(service::serve(arguments, runs.handle().clone()));
            runs.shutdown_background();
            served
        }
        Some(Command::ServeStub) => single_threaded(stub::serve()),
        Some(Command::ServeReceiver) => single_threaded(receiver::serve()),
        Some(Command::ServeNetwork) => actix_web::rt::System::new().block_on(network::serve()),
        Some(Command::Load(arguments)) => single_threaded(load::run(arguments)),
        None => {
            let mut plan = cli.plan;
            if plan.quick {
                plan.rounds = plan.rounds.min(2);
                plan.seconds = plan.seconds.min(1.0);
            }
            let report = measure::all(&plan)?;
            println!("{}", report.text());
            match plan.document.filter(|_| !plan.quick) {
                Some(document) => report.write_into(&document),
                None => Ok(()),
            }
        }
    }
}

fn single_threaded(future: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, future)
}
