//! What the zygote and its workers give up.
//!
//! The order matters: limits need no right that a later step takes away, landlock needs system calls that the filter refuses,
//! and the filter comes last.

use crate::call::{Landlock, Protection};
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;

/// Memory that a worker may write to, besides what the zygote has and the engine's limit: messages, and the allocator's own.
const SLACK: u64 = 128 << 20;
/// Address space besides what the zygote has. Allocators reserve some that they never use.
const RESERVE: u64 = 2 << 30;
/// Seconds of processor time of a worker, in all its calls. The parent's deadline is what holds; this is for a parent that
/// stands still.
const PROCESSOR_SECONDS: u64 = 3_600;

/// Limits of the zygote, which its workers inherit.
pub fn limit_zygote() {
    // Best effort: where the kernel runs out of memory, it should take a worker, not the service.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let _ = rustix::process::setpriority_process(None, 5);
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    let none = rustix::thread::CapabilitySet::empty();
    let _ = rustix::thread::set_capabilities(
        None,
        rustix::thread::CapabilitySets { effective: none, permitted: none, inheritable: none },
    );
    limit(Resource::Core, 0);
    limit(Resource::Fsize, 0);
    limit(Resource::Memlock, 0);
    limit(Resource::Msgqueue, 0);
    // Control socket, standard streams, a worker's socket, its pidfd, and one that landlock opens.
    limit(Resource::Nofile, 16);
}

/// Limits of a worker.
pub fn limit_worker(memory: &Memory) {
    limit(Resource::As, memory.mapped);
    limit(Resource::Data, memory.writable);
    limit(Resource::Cpu, PROCESSOR_SECONDS);
    // Those that are open stay so.
    limit(Resource::Nofile, 1);
    limit(Resource::Nproc, 0);
}

fn limit(resource: Resource, most: u64) {
    let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
}

/// How much memory a worker may have, in bytes.
#[derive(Debug)]
pub struct Memory {
    /// Address space.
    mapped: u64,
    /// Memory that it may write to.
    writable: u64,
}

impl Memory {
    /// That of a worker whose engine may use `engine` bytes, forked from this process.
    pub fn of_worker(engine: u64) -> Self {
        let sizes = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
        let size = |column| {
            let pages = sizes.split_whitespace().nth(column).and_then(|pages| pages.parse::<u64>().ok());
            pages.unwrap_or(1 << 20).saturating_mul(page)
        };
        Self {
            mapped: size(0).saturating_add(engine).saturating_add(RESERVE),
            writable: size(5).saturating_add(engine).saturating_add(SLACK),
        }
    }
}

/// Closes the file system, TCP, abstract sockets and signals.
pub fn landlock() -> Landlock {
    // The newest version that this code was tested with. Older kernels do what they can.
    let abi = ABI::V7;
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(abi)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    match restricted.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => Landlock::Full,
        Ok(RulesetStatus::PartiallyEnforced) => Landlock::Partial,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Landlock::Missing,
    }
}

/// What a zygote and its workers may call. Anything else ends the process.
const ALLOWED: &[i64] = &[
    // Messages.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup3,
    // Workers.
    libc::SYS_wait4,
    libc::SYS_pidfd_open,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    libc::SYS_prlimit64,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Time, random numbers, locks, signals of its own, and the end.
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls of libraries that look around, such as for the time zone: they fail, and the process goes on.
const REFUSED: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_ioctl,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_sched_getaffinity,
    libc::SYS_tgkill,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
];

/// What the zygote may do, and a worker may not.
const TAKEN_AWAY: &[i64] = &[
    libc::SYS_clone,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    libc::SYS_wait4,
    libc::SYS_pidfd_open,
    libc::SYS_prctl,
    libc::SYS_seccomp,
    libc::SYS_prlimit64,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_close_range,
    libc::SYS_dup3,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    libc::SYS_rt_sigaction,
];

/// The filters of system calls, compiled before they are needed.
#[derive(Debug)]
pub struct Filters {
    zygote: [BpfProgram; 2],
    worker: BpfProgram,
}

impl Filters {
    /// Compiles the filters; `None` where that is not possible, as on another architecture.
    pub fn new() -> Option<Self> {
        Some(Self { zygote: [allowed()?, refused(REFUSED)?], worker: refused(TAKEN_AWAY)? })
    }

    /// Confines the zygote, and what it forks.
    pub fn confine_zygote(&self) -> bool {
        // The second would refuse nothing that installing the first needs.
        self.zygote.iter().rev().all(|filter| seccompiler::apply_filter(filter).is_ok())
    }

    /// Confines a worker.
    pub fn confine_worker(&self) -> bool {
        seccompiler::apply_filter(&self.worker).is_ok()
    }
}

/// A filter that ends the process at any call that is not listed.
fn allowed() -> Option<BpfProgram> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().chain(REFUSED).map(|call| (*call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    {
        rules.insert(libc::SYS_fork, Vec::new());
        rules.insert(libc::SYS_dup2, Vec::new());
        rules.insert(libc::SYS_poll, Vec::new());
    }
    // `fork` is `clone` without shared memory, threads or new name spaces.
    let sharing = libc::CLONE_VM
        | libc::CLONE_THREAD
        | libc::CLONE_FILES
        | libc::CLONE_FS
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    rules.insert(libc::SYS_clone, vec![without(0, u64::from(sharing.cast_unsigned()))?]);
    // The standard library's check, in builds for tests, that a descriptor which it closes is open.
    let get = u64::from(libc::F_GETFD.cast_unsigned());
    let condition = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, get).ok()?;
    rules.insert(libc::SYS_fcntl, vec![SeccompRule::new(vec![condition]).ok()?]);
    // Memory is never made executable.
    let executable = u64::from(libc::PROT_EXEC.cast_unsigned());
    rules.insert(libc::SYS_mmap, vec![without(2, executable)?]);
    rules.insert(libc::SYS_mprotect, vec![without(2, executable)?]);
    compile(rules, SeccompAction::KillProcess, SeccompAction::Allow)
}

/// A rule that holds when none of `bits` is set in an argument.
fn without(argument: u8, bits: u64) -> Option<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bits), 0);
    SeccompRule::new(vec![condition.ok()?]).ok()
}

/// A filter in which the listed calls fail with `EPERM`.
fn refused(calls: &[i64]) -> Option<BpfProgram> {
    let rules = calls.iter().map(|call| (*call, Vec::new())).collect();
    compile(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM.cast_unsigned()))
}

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Option<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().ok()?;
    SeccompFilter::new(rules, otherwise, listed, architecture).ok()?.try_into().ok()
}

/// What the zygote tells its parent.
pub fn protection_to_bytes(protection: Protection) -> [u8; 3] {
    let landlock = match protection.landlock {
        Landlock::Full => 2,
        Landlock::Partial => 1,
        Landlock::Missing => 0,
    };
    [b'H', landlock, u8::from(protection.seccomp)]
}
