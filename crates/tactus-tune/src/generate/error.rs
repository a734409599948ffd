//! Why nothing is generated.

use tactus_audit::Impossible;
use tactus_model::CpuSet;

/// Why nothing is generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// The CPUs for real-time work cannot be set apart.
    #[error(transparent)]
    Isolation(#[from] Impossible),
    /// More vCPUs than CPUs.
    #[error(
        "{wanted} vCPUs do not fit on the isolated CPUs {isolated}: {capacity} of {total} are on one NUMA node"
    )]
    TooMany {
        /// The requested number.
        wanted: usize,
        /// All isolated CPUs.
        isolated: CpuSet,
        /// How many of them the best node has.
        capacity: usize,
        /// How many there are.
        total: usize,
    },
    /// Fewer vCPUs than make sense.
    #[error("a measurement needs at least {least} CPUs, one of them for housekeeping; these are {wanted}")]
    TooFew {
        /// The requested number, or the existing one.
        wanted: usize,
        /// The needed number.
        least: usize,
    },
    /// vCPUs that would end in the middle of a core.
    #[error(
        "{wanted} vCPUs need more than the {cores} isolated cores, and would use part of a core of {threads} \
hardware threads"
    )]
    HalfACore {
        /// The requested number.
        wanted: usize,
        /// Hardware threads of a core.
        threads: usize,
        /// Isolated cores of the node.
        cores: usize,
    },
    /// Cores with and without hardware threads.
    #[error("{wanted} vCPUs need more than the {cores} isolated cores, whose numbers of threads differ")]
    UnlikeCores {
        /// The requested number.
        wanted: usize,
        /// Isolated cores of the node.
        cores: usize,
    },
    /// Memory that is no multiple of its pages.
    #[error("{memory} of memory is not a multiple of pages of {page}")]
    UnevenMemory {
        /// The amount.
        memory: String,
        /// The page's size.
        page: &'static str,
    },
    /// More memory than there is.
    #[error("{memory} of memory for a guest is more than this machine's {total}")]
    TooMuchMemory {
        /// The amount.
        memory: String,
        /// The machine's memory.
        total: String,
    },
    /// The plan sets nothing that this generator writes.
    #[error("the profile {profile} has no setting here for {what}")]
    Nothing {
        /// The profile.
        profile: String,
        /// The thing that would hold it.
        what: &'static str,
    },
    /// There is no profile of this name.
    #[error("`{0}` is not a profile")]
    UnknownProfile(String),
    /// A name that a tool would refuse, or that would change the meaning of a file.
    #[error("`{0}` is not a valid name of a guest")]
    BadName(String),
    /// A machine that the generator has nothing for.
    #[error(
        "{what} is not generated for {}",
        if machine.is_empty() { "a machine whose facts do not include its kind (uname:machine)" } else { machine }
    )]
    Machine {
        /// The thing that is not generated.
        what: &'static str,
        /// The machine, as uname says it.
        machine: String,
    },
    /// The user's own domain cannot be changed.
    #[error("{file}: {reason}")]
    Domain {
        /// Its file.
        file: String,
        /// What is wrong with it.
        reason: String,
        /// The remedy.
        hint: String,
    },
}

impl GenerateError {
    /// The remedy for the user.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Isolation(wrong) => wrong.hint(),
            Self::TooMany { capacity, .. } => {
                format!("use --vcpus {capacity} or fewer, or isolate more CPUs of one node with --isolate")
            }
            Self::TooFew { least, .. } => {
                format!("isolate at least {least} cores of one NUMA node with --isolate, and use --vcpus {least} or more")
            }
            Self::HalfACore { wanted, threads, .. } => {
                let down = wanted - wanted % threads;
                format!("use --vcpus {down}, or turn SMT off and isolate one core per vCPU")
            }
            Self::UnlikeCores { cores, .. } => format!("use --vcpus {cores} or fewer"),
            Self::UnevenMemory { .. } => "use whole GiB with --memory, or --pages 2M, or --pages 4K".into(),
            Self::TooMuchMemory { .. } => "give the guest less with --memory".into(),
            Self::Nothing { .. } => "`tactus tune plan` shows what the profile sets".into(),
            Self::UnknownProfile(_) => {
                "the profiles are realtime, realtime-virtual-host, realtime-virtual-guest and cpu-partitioning".into()
            }
            Self::BadName(_) => {
                "use lower-case letters, digits and dashes, at most 40, beginning with a letter".into()
            }
            Self::Machine { .. } => "generate on the target machine, or take its facts with --from BUNDLE".into(),
            Self::Domain { hint, .. } => hint.clone(),
        }
    }
}
