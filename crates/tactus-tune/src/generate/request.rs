//! The request to a generator.

use tactus_audit::Subject;
use tactus_model::change::{Change, Target};

use super::{GenerateError, Page, Placement, Size};
use crate::plan::Withheld;

/// The accelerator of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// The processor.
    Kvm,
    /// QEMU.
    Tcg,
}

/// The user's options for a guest or a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestOptions {
    /// Its name.
    pub name: String,
    /// vCPUs, or a container's CPUs; `None`: one for each isolated core of one NUMA node.
    pub vcpus: Option<usize>,
    /// Memory; `None`: 4 GiB or half of the machine's, and no huge pages where there is no guest.
    pub memory: Option<Size>,
    /// Pages of the memory; `None`: the largest that the machine has.
    pub page: Option<Page>,
    /// The accelerator; `None`: KVM, or that of a given domain.
    pub accel: Option<Accel>,
}

/// The default of a guest's memory: 4 GiB, or half of the machine's if that is less.
const MEMORY: Size = Size(4 << 30);
/// Such a half is rounded to a multiple of this, in bytes.
const STEP: u64 = 64 << 20;

impl Default for GuestOptions {
    fn default() -> Self {
        Self { name: "rt-guest".into(), vcpus: None, memory: None, page: None, accel: None }
    }
}

/// The request to a generator.
pub struct GenerateRequest<'a> {
    /// The system that it is for.
    pub subject: &'a Subject<'a>,
    /// The profile's name.
    pub profile: &'a str,
    /// The changes of the plan, in its order.
    pub changes: &'a [Change],
    /// Changes of the profile that the plan leaves out, because they would weaken a guard of the system.
    pub withheld: &'a [Withheld],
    /// The user's options.
    pub options: &'a GuestOptions,
    /// The words on a check by its id: [`super::of_check`].
    pub says: fn(&str) -> String,
}

impl GenerateRequest<'_> {
    /// The accelerator of the guest.
    #[must_use]
    pub fn accel(&self) -> Accel {
        self.options.accel.unwrap_or(Accel::Kvm)
    }

    /// Where a guest with at least `least` vCPUs stands.
    ///
    /// # Errors
    /// As [`Placement::of`], and when the guest's name is of no use.
    pub fn placement(&self, least: usize) -> Result<Placement, GenerateError> {
        let name = &self.options.name;
        let good = name.len() <= 40
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !name.ends_with('-');
        if !good {
            return Err(GenerateError::BadName(name.chars().take(60).collect()));
        }
        Placement::of(self.subject, self.options.vcpus, least)
    }

    /// The guest's memory and its pages.
    ///
    /// # Errors
    /// When the one is no multiple of the other, or the machine has not as much.
    pub fn memory(&self) -> Result<(Size, Page), GenerateError> {
        let total = self.total();
        let half = total.map_or(MEMORY, |total| Size((total.0 / 2 / STEP * STEP).max(STEP)));
        let memory = self.options.memory.unwrap_or(MEMORY.min(half));
        if let Some(total) = total.filter(|total| memory > *total) {
            return Err(GenerateError::TooMuchMemory {
                memory: memory.to_string(),
                total: total.to_string(),
            });
        }
        let page = self.options.page.unwrap_or_else(|| Page::choose(self.subject.facts, memory));
        if !memory.0.is_multiple_of(page.bytes()) {
            return Err(GenerateError::UnevenMemory { memory: memory.to_string(), page: page.word() });
        }
        Ok((memory, page))
    }

    /// The memory of the machine, where it is known.
    fn total(&self) -> Option<Size> {
        let total = self.subject.facts.field("/proc/meminfo", "MemTotal", ':')?;
        total.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024).map(Size)
    }

    /// The kernel parameters that are left out: the word, its check, and the guard that it would weaken.
    #[must_use]
    pub fn withheld_parameters(&self) -> Vec<(String, &str, String)> {
        self.withheld
            .iter()
            .filter_map(|withheld| {
                let Target::Kernel { parameter } = &withheld.change.target else { return None };
                let then = &withheld.change.then;
                let word = if then.is_empty() { parameter.clone() } else { format!("{parameter}={then}") };
                let reason = format!("it would weaken {}: {}", withheld.guard, withheld.gives_up);
                Some((word, withheld.change.check.as_str(), reason))
            })
            .collect()
    }

    /// The kernel parameters of the plan with their check: `(parameter, value, check)`.
    #[must_use]
    pub fn kernel_parameters(&self) -> Vec<(&str, &str, &str)> {
        self.changes
            .iter()
            .filter_map(|change| match &change.target {
                Target::Kernel { parameter } => {
                    Some((parameter.as_str(), change.then.as_str(), change.check.as_str()))
                }
                _ => None,
            })
            .collect()
    }
}
