//! Readings of processes and of this machine from the kernel.

use anyhow::{Context, Result, anyhow};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Ticks per second in /proc/PID/stat, the same on every Linux on which this runs.
const TICKS: f64 = 100.0;

/// Returns the processor time that a process has used, in seconds: user and system time of all threads.
pub fn processor_seconds(process: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses can contain spaces.
    let (_, rest) = stat.rsplit_once(')').context("an odd /proc/PID/stat")?;
    let ticks: Vec<f64> =
        rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

/// Returns a value of /proc/PID/status in MiB, such as `VmRSS`.
pub fn memory(process: u32, name: &str) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find(|line| line.starts_with(name)).context("no such line")?;
    let kib: f64 = line.split_whitespace().nth(1).context("no value")?.parse()?;
    Ok(kib / 1024.0)
}

/// Returns the result of `work`, and the peak of a process's anonymous memory meanwhile, in MiB.
pub fn most_memory<T>(process: u32, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0.0_f64;
            while !ended.load(Ordering::Relaxed) {
                most = most.max(memory(process, "RssAnon").unwrap_or_default());
                thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let done = work();
        ended.store(true, Ordering::Relaxed);
        let most = watching.join().map_err(|_| anyhow!("the memory was not watched"))?;
        Ok((done?, most))
    })
}

/// Returns the median time of 200 synced writes to a file in `folder`, in microseconds.
pub fn sync_micros(folder: &Path) -> Result<f64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(&times))
}

/// Describes the machine in one line.
pub fn describe() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<f64>().ok());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} cores ({model}), {:.0} GiB, Linux {}",
        kib.unwrap_or_default() / 1048576.0,
        kernel.trim()
    )
}

/// Returns the load average of the last minute. Before the benchmark, it shows what else runs here.
pub fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Returns the wall clock in microseconds, the same for all processes of the benchmark.
pub fn wall_micros() -> i64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the service's clock is too coarse for what is measured here"
    )]
    chrono::Utc::now().timestamp_micros()
}

/// Returns the value that `part` (0 to 1) of the sorted values do not exceed, or 0 if there are none.
pub fn quantile(sorted: &[u32], part: f64) -> u32 {
    let place = ((sorted.len() as f64 * part) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or_default()
}

/// Returns the median.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle.wrapping_sub(1)), sorted.get(middle)) {
        (Some(low), Some(high)) if sorted.len().is_multiple_of(2) => f64::midpoint(*low, *high),
        (_, Some(high)) => *high,
        _ => f64::NAN,
    }
}
