//! Confines this process until its end: limits its resources and the system calls that it may make.
//!
//! | mechanism | restrictions |
//! |---|---|
//! | `setrlimit` | memory, CPU time, no file may grow, no file may be opened, no process, no core |
//! | `no_new_privs` | no program could give it more rights |
//! | landlock | no file, no TCP port, no signal and no abstract socket outside |
//! | seccomp | the few calls needed to read and to compute; all others fail: no sockets, no programs, no threads, no files, no executable memory |
//!
//! Linux has landlock since 5.13, and parts of it since later versions. [`Confinement`] says if the kernel lacks it.

use std::collections::BTreeMap;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::limits::Limits;

/// Which of the restrictions that depend on the kernel are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confinement {
    pub landlock: bool,
}

/// Removes access to all files from this thread and from everything that it starts from now on. Call [`restrict_calls`]
/// next.
pub(crate) fn restrict_files() -> io::Result<Confinement> {
    let status = restrict_by_landlock().map_err(io::Error::other)?;
    Ok(Confinement {
        landlock: status != RulesetStatus::NotEnforced,
    })
}

fn restrict_by_landlock() -> Result<RulesetStatus, RulesetError> {
    let abi = ABI::V6;
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    Ok(restricted.ruleset)
}

/// Limits the resources of this process. `stack_bytes` is the stack of a thread that is started later.
pub(crate) fn limit_resources(limits: &Limits, stack_bytes: u64) -> io::Result<()> {
    let memory = memory_in_use()?
        .saturating_add(stack_bytes)
        .saturating_add(limits.memory_bytes);
    set_limit(libc::RLIMIT_AS, memory)?;
    let seconds = limits.cpu_seconds.max(1);
    // At the first limit the kernel sends SIGXCPU, which shows that the time limit was reached. At the second, one
    // second later, it kills a process that has not ended.
    set_limits(libc::RLIMIT_CPU, seconds, seconds.saturating_add(1))?;
    set_limit(libc::RLIMIT_FSIZE, 0)?;
    set_limit(libc::RLIMIT_CORE, 0)
}

/// Restricts all threads of this process to the system calls that a reader needs.
pub(crate) fn restrict_calls() -> io::Result<()> {
    set_limit(libc::RLIMIT_NPROC, 0)?;
    // Files that are already open stay open. This limit must be set after landlock, which needs to open a file.
    set_limit(libc::RLIMIT_NOFILE, 0)?;
    let filter = syscall_filter().map_err(io::Error::other)?;
    // This also sets `no_new_privs`.
    seccompiler::apply_filter_all_threads(&filter).map_err(io::Error::other)
}

/// Applies all restrictions of this module to a process that has a single thread and starts no other.
pub fn confine_process(limits: &Limits) -> io::Result<Confinement> {
    limit_resources(limits, 0)?;
    let confinement = restrict_files()?;
    restrict_calls()?;
    Ok(confinement)
}

/// The address space in use, in bytes. Most of it is the program.
fn memory_in_use() -> io::Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages = statm.split(' ').next().and_then(|pages| pages.parse().ok());
    let pages: u64 = pages.ok_or_else(|| io::Error::other("/proc/self/statm cannot be read"))?;
    // SAFETY: a plain call that cannot fail for this name of a setting.
    #[allow(unsafe_code)]
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Ok(pages * u64::try_from(page_bytes).unwrap_or(4096))
}

fn set_limit(resource: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    set_limits(resource, most, most)
}

/// Sets the soft and the hard limit. A hard limit that is already lower stays, because not every process may raise it.
fn set_limits(resource: libc::__rlimit_resource_t, soft: u64, hard: u64) -> io::Result<()> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel only writes the structure.
    #[allow(unsafe_code)]
    if unsafe { libc::getrlimit(resource, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    limit.rlim_max = limit.rlim_max.min(hard);
    limit.rlim_cur = limit.rlim_max.min(soft);
    // SAFETY: the kernel only reads the structure.
    #[allow(unsafe_code)]
    match unsafe { libc::setrlimit(resource, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// System calls that are allowed with any arguments.
const CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fstat,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads that already run, signals of a crash, the end of the process.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Time and random numbers.
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
];

fn syscall_filter() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.iter().map(|call| (*call, Vec::new())).collect();
    // The third argument of `mmap` and `mprotect` is the protection of the memory.
    let not_executable = || {
        let executable = libc::PROT_EXEC as u64;
        argument_rule(2, SeccompCmpOp::MaskedEq(executable), 0)
    };
    rules.insert(libc::SYS_mmap, vec![not_executable()?]);
    rules.insert(libc::SYS_mprotect, vec![not_executable()?]);
    // A process aborts by sending a signal to itself.
    let own = u64::from(std::process::id());
    rules.insert(
        libc::SYS_tgkill,
        vec![argument_rule(0, SeccompCmpOp::Eq, own)?],
    );
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(filter.try_into()?)
}

fn argument_rule(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}

#[cfg(test)]
mod tests;
