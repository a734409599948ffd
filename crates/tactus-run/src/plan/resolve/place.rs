//! An environment of a plan, as this machine can have it.

use tactus_environment::{self as environment, Environment, Layout, Usable};
use tactus_model::CpuSet;
use tactus_model::catalogue::Measure;
use tactus_model::catalogue::measure::Memory;
use tactus_model::cpus::CpuRequest;
use tactus_model::finding::Role;
use tactus_model::plan;
use tactus_model::size::{Bytes, Cache, Most, Sizes};
use tactus_model::topology::{CpuRequestError, Topology};
use tactus_system::System;

use super::Resolver;
use crate::plan::resolved::ResolvedEnvironment;
use crate::plan::{PlanError, nesting};

impl Resolver<'_> {
    pub(super) fn environment(&self, name: &str) -> Result<ResolvedEnvironment, PlanError> {
        let key = format!("environment.{name}.cpus");
        let wrong = |message: &str, hint: &str| self.source.error(&key, message.to_owned(), hint.to_owned());
        let unknown = |message| wrong(message, "use an environment of the plan");
        let mut spec = self.plan.environment.get(name).ok_or_else(|| unknown("it is not defined"))?.clone();
        let kind = environment::find(&spec.kind).ok_or_else(|| unknown("its kind is unknown"))?;
        let asked = spec.cpus.clone().unwrap_or(CpuRequest::Auto);
        let outer = spec.inside.as_ref().map(|outer| self.environment(outer)).transpose()?;
        let around = outer.as_ref().map(|outer| self.inside(outer));
        let (elsewhere, unreachable) = self.elsewhere(kind, &spec);
        // `auto` leaves out the CPUs of a future partition. CPUs that the user names are used, or the error says why
        // not.
        let here = match asked == CpuRequest::Auto && !kind.takes_cpus() {
            true => self.machine.without(&self.taken()),
            false => self.machine.clone(),
        };
        let machine = around.as_ref().or(elsewhere.as_ref()).unwrap_or(&here);
        nesting::add_programs(self.plan, name, kind, &mut spec, self.system);
        let cpus = match (&asked, kind.numbers_cpus()) {
            // A virtual machine: one housekeeping CPU, and those to measure on.
            (CpuRequest::Auto, true) => {
                let measuring = machine.measuring();
                machine.housekeeping(&measuring).take(1).or(&measuring)
            }
            (CpuRequest::Auto, false) => machine.usable(),
            (other, _) => machine
                .resolve(other)
                .map_err(|error| wrong(&with_owner(&error, self.system), &error.hint()))?,
        };
        let near = kind.layout(&cpus, asked != CpuRequest::Auto, machine);
        let mut layout = outer.as_ref().map_or_else(|| near.clone(), |outer| near.through(&outer.layout));
        let usable = kind.usable_as(&spec, self.system);
        let emulated = usable.is_emulated();
        let usable = match usable {
            Usable::Yes { .. } => None,
            Usable::No { reason, remedy } => Some(format!("{reason}; {remedy}")),
        };
        let obstacle = if let Some(outer) = &outer {
            outer.obstacle.clone().or_else(|| nesting::missing_program(kind, &spec, outer, self.system))
        } else if usable.is_some() {
            usable
        } else if let Some(running) = &spec.attach {
            let found = environment::attached(kind, &spec, self.system, self.machine);
            match found.map(|found| narrowed(found, &asked, running)) {
                Ok(Ok(found)) => {
                    layout = found;
                    None
                }
                Ok(Err(obstacle)) => Some(obstacle),
                Err(error) => Some(match error.hint {
                    Some(hint) => format!("{}; {hint}", error.reason),
                    None => error.reason,
                }),
            }
        } else {
            let profiled = environment::profiled::of(&spec, &layout);
            profiled.err().map(|error| format!("{}; {}", error.message, error.hint))
        };
        let obstacle = obstacle.or(unreachable);
        // An environment inside another machine has that machine's CPUs.
        let elsewhere = elsewhere.or_else(|| outer.as_ref()?.elsewhere.clone());
        let near = if outer.is_some() { near } else { layout.clone() };
        Ok(ResolvedEnvironment {
            kind,
            spec,
            housekeeping: CpuSet::default(),
            layout,
            near,
            elsewhere,
            emulated,
            obstacle,
        })
    }

    /// CPUs that environments of the plan take from this machine while they are up.
    fn taken(&self) -> CpuSet {
        let takes =
            |spec: &plan::Environment| environment::find(&spec.kind).is_some_and(Environment::takes_cpus);
        let partitions = self.plan.environment.iter().filter(|(_, spec)| takes(spec));
        // One whose CPUs are wrong is complained of where it is used.
        let partitions = partitions.filter_map(|(name, _)| self.environment(name).ok());
        partitions.fold(CpuSet::default(), |all, partition| all.or(&partition.taken()))
    }

    /// The other machine that an environment lies on, if it lies on one, and why it cannot be asked for its
    /// CPUs; then it has those that the plan names.
    pub(super) fn elsewhere(
        &self,
        kind: &(dyn Environment + Sync),
        spec: &plan::Environment,
    ) -> (Option<Topology>, Option<String>) {
        if !kind.elsewhere() {
            return (None, None);
        }
        let named = || {
            let online = match &spec.cpus {
                Some(CpuRequest::List(cpus)) => cpus.clone(),
                _ => CpuSet::one(0),
            };
            Topology { allowed: online.clone(), online, ..Topology::default() }
        };
        if spec.attach.is_some() || matches!(kind.usable_as(spec, self.system), Usable::No { .. }) {
            return (Some(named()), None);
        }
        match kind.topology(spec, self.system) {
            Ok(there) => (Some(there), None),
            Err(error) => {
                let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                (Some(named()), Some(format!("{}{hint}", error.reason)))
            }
        }
    }

    /// For a measurement whose largest array depends on a cache: all environments on this machine get the machine's
    /// cache size, or the fact that it reports none. The sizes in a guest are the hypervisor's invention, and arrays
    /// of different sizes cannot be compared.
    pub(super) fn sized(
        &self,
        measure: Measure,
        environment: &ResolvedEnvironment,
        table: &str,
    ) -> Result<Measure, PlanError> {
        let Measure::Memory(memory) = &measure else { return Ok(measure) };
        let Sizes { least, most: Most::Caches { times, cache: Cache::Own } } = memory.sizes() else {
            return Ok(measure);
        };
        if environment.elsewhere.is_some() {
            return Ok(measure);
        }
        let cache = *self.cache.get_or_init(|| self.largest_cache());
        let most = Most::Caches { times, cache };
        match most.bytes() {
            Some(bytes) if least > bytes => Err(self.source.error(
                &format!("{table}.sizes"),
                format!("the smallest array is {least}, but the largest, {most}, is {bytes} on this machine"),
                "lower the smallest size, or use a larger multiple of the last-level cache, or name both sizes",
            )),
            _ => Ok(Measure::Memory(Memory { sizes: Some(Sizes { least, most }) })),
        }
    }

    /// The largest cache of any CPU of this machine that is on.
    fn largest_cache(&self) -> Cache {
        let size = |cpu: u32, index: u32| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/size");
            self.system.text(&path)?.trim().strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)
        };
        let of = |cpu: u32| (0..8).map_while(move |index| size(cpu, index)).max();
        let largest = self.machine.online.iter().filter_map(of).max();
        largest.map_or(Cache::Unknown, |bytes| Cache::Size(Bytes(bytes)))
    }

    /// The CPUs of an environment as its own small machine.
    pub(super) fn inside(&self, environment: &ResolvedEnvironment) -> Topology {
        let inside = environment.layout.inside();
        let measuring = environment.layout.measuring.clone();
        if environment.kind.numbers_cpus() {
            return Topology {
                online: inside.clone(),
                isolated: measuring.clone(),
                preferred: measuring,
                allowed: inside,
                ..Topology::default()
            };
        }
        let machine = environment.elsewhere.as_ref().unwrap_or(self.machine);
        let given = !matches!(environment.spec.cpus, None | Some(CpuRequest::Auto));
        let mut place = Topology {
            booted: machine.booted.and(&inside),
            nohz_full: CpuSet::default(),
            preferred: measuring,
            allowed: inside,
            ..machine.clone()
        };
        if given {
            place.isolated = place.isolated.and(&place.allowed);
        }
        // Other environments are not limited by this process's cgroup.
        if environment.kind.role() != Role::Host {
            (place.cpuset, place.partitions) = (None, Vec::new());
        }
        place
    }
}

/// Why CPUs cannot be had, and who has them where they are gone from this machine.
fn with_owner(error: &CpuRequestError, system: &dyn System) -> String {
    let owner = match error {
        CpuRequestError::NotOnline { missing, .. } => {
            environment::ENVIRONMENTS.iter().find_map(|kind| kind.owner(missing, system))
        }
        _ => None,
    };
    owner.map_or_else(|| error.to_string(), |owner| format!("{error}; {owner}"))
}

/// The layout of a running environment, with the CPUs to measure on that the plan asks for: it gets no
/// others than it has.
fn narrowed(found: Layout, asked: &CpuRequest, running: &str) -> Result<Layout, String> {
    let inside = found.inside();
    let own = Topology {
        online: inside.clone(),
        allowed: inside.clone(),
        preferred: found.measuring.clone(),
        ..Topology::default()
    };
    match own.resolve(asked) {
        Ok(_) if *asked == CpuRequest::Auto => Ok(found),
        Ok(measuring) => Ok(Layout { measuring, ..found }),
        Err(_) => Err(format!(
            "`{running}` runs on CPUs {inside}, but the plan asks for {asked}; leave out `cpus`, or name \
                some of these"
        )),
    }
}
