//! Why the virtual CPUs of a guest left it while a row was measured, and for how long.

use serde::{Deserialize, Serialize};

/// The counts of the kernel's tracepoints of KVM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KvmExits {
    /// It was counted.
    Counted(CountedExits),
    /// It is unknown, for this reason.
    #[serde(rename = "unavailable")]
    Unknowable(String),
}

/// The exits that were counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedExits {
    /// Time of counting, in ns.
    pub ns: u64,
    /// The exits of each virtual CPU, by reason. Empty if KVM itself runs the guest instruction by instruction, instead
    /// of the processor. Such exits are visible only if they continue to user space.
    pub kinds: Vec<ExitKind>,
    /// Those of them that continued to user space (QEMU), by KVM's reason for that. Their time is the time spent there.
    /// Absent: the kernel does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_user: Option<Vec<ExitKind>>,
}

/// The exits of a virtual CPU for one reason. One that was not over when the counting ended is not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExitKind {
    /// The virtual CPU.
    pub cpu: u32,
    /// The name of the reason in the kernel's own tools: `HLT`, `npf`; without a name, its number.
    pub reason: String,
    /// Number of times that it left the guest for this reason and came back.
    pub count: u64,
    /// The time from these exits to the entries after them, all together, in ns.
    pub ns: u64,
    /// The longest such time, in ns.
    pub longest_ns: u64,
}

/// The name of a reason for which a virtual CPU's thread went back to user space: KVM_EXIT_* of linux/kvm.h.
#[must_use]
pub fn user_reason(number: u64) -> String {
    named(USER_REASONS, number).map_or_else(|| format!("reason {number:#x}"), str::to_owned)
}

/// KVM's number for reasons of Intel's VMX, as its tracepoints say.
const VMX: u64 = 1;
/// The same for AMD's SVM.
const SVM: u64 = 2;

/// The name of a reason that has a number in the set of instructions `isa`.
#[must_use]
pub fn reason(isa: u64, number: u64) -> String {
    let found = match isa {
        VMX => named(VMX_REASONS, number).map(str::to_owned),
        SVM => svm(number),
        _ => None,
    };
    found.unwrap_or_else(|| format!("reason {number:#x}"))
}

fn named(of: &[(u64, &'static str)], number: u64) -> Option<&'static str> {
    of.iter().find(|(own, _)| *own == number).map(|(_, name)| *name)
}

fn svm(number: u64) -> Option<String> {
    let register = |name: &str, first: u64| format!("{name}{}", number - first);
    Some(match number {
        0x00..=0x0f => register("read_cr", 0x00),
        0x10..=0x1f => register("write_cr", 0x10),
        0x20..=0x2f => register("read_dr", 0x20),
        0x30..=0x3f => register("write_dr", 0x30),
        0x40..=0x5f => format!("{} excp", named(EXCEPTIONS, number - 0x40)?),
        _ => named(SVM_REASONS, number)?.to_owned(),
    })
}

/// Exceptions by their vectors.
const EXCEPTIONS: &[(u64, &str)] = &[
    (0, "DE"),
    (1, "DB"),
    (3, "BP"),
    (4, "OF"),
    (5, "BR"),
    (6, "UD"),
    (7, "NM"),
    (8, "DF"),
    (10, "TS"),
    (11, "NP"),
    (12, "SS"),
    (13, "GP"),
    (14, "PF"),
    (16, "MF"),
    (17, "AC"),
    (18, "MC"),
    (19, "XF"),
];

/// Numbers: Intel SDM, volume 3, appendix C. Names: those of KVM's tracepoint, which `perf kvm stat` also shows.
const VMX_REASONS: &[(u64, &str)] = &[
    (0, "EXCEPTION_NMI"),
    (1, "EXTERNAL_INTERRUPT"),
    (2, "TRIPLE_FAULT"),
    (3, "INIT_SIGNAL"),
    (4, "SIPI_SIGNAL"),
    (7, "INTERRUPT_WINDOW"),
    (8, "NMI_WINDOW"),
    (9, "TASK_SWITCH"),
    (10, "CPUID"),
    (12, "HLT"),
    (13, "INVD"),
    (14, "INVLPG"),
    (15, "RDPMC"),
    (16, "RDTSC"),
    (18, "VMCALL"),
    (19, "VMCLEAR"),
    (20, "VMLAUNCH"),
    (21, "VMPTRLD"),
    (22, "VMPTRST"),
    (23, "VMREAD"),
    (24, "VMRESUME"),
    (25, "VMWRITE"),
    (26, "VMOFF"),
    (27, "VMON"),
    (28, "CR_ACCESS"),
    (29, "DR_ACCESS"),
    (30, "IO_INSTRUCTION"),
    (31, "MSR_READ"),
    (32, "MSR_WRITE"),
    (33, "INVALID_STATE"),
    (34, "MSR_LOAD_FAIL"),
    (36, "MWAIT_INSTRUCTION"),
    (37, "MONITOR_TRAP_FLAG"),
    (39, "MONITOR_INSTRUCTION"),
    (40, "PAUSE_INSTRUCTION"),
    (41, "MCE_DURING_VMENTRY"),
    (43, "TPR_BELOW_THRESHOLD"),
    (44, "APIC_ACCESS"),
    (45, "EOI_INDUCED"),
    (46, "GDTR_IDTR"),
    (47, "LDTR_TR"),
    (48, "EPT_VIOLATION"),
    (49, "EPT_MISCONFIG"),
    (50, "INVEPT"),
    (51, "RDTSCP"),
    (52, "PREEMPTION_TIMER"),
    (53, "INVVPID"),
    (54, "WBINVD"),
    (55, "XSETBV"),
    (56, "APIC_WRITE"),
    (57, "RDRAND"),
    (58, "INVPCID"),
    (59, "VMFUNC"),
    (60, "ENCLS"),
    (61, "RDSEED"),
    (62, "PML_FULL"),
    (63, "XSAVES"),
    (64, "XRSTORS"),
    (67, "UMWAIT"),
    (68, "TPAUSE"),
    (74, "BUS_LOCK"),
    (75, "NOTIFY"),
    (77, "TDCALL"),
    (84, "MSR_READ_IMM"),
    (85, "MSR_WRITE_IMM"),
];

/// Numbers: AMD APM, volume 2, appendix C. Names: those of KVM's tracepoint.
const SVM_REASONS: &[(u64, &str)] = &[
    (0x60, "interrupt"),
    (0x61, "nmi"),
    (0x62, "smi"),
    (0x63, "init"),
    (0x64, "vintr"),
    (0x65, "cr0_sel_write"),
    (0x66, "read_idtr"),
    (0x67, "read_gdtr"),
    (0x68, "read_ldtr"),
    (0x69, "read_rt"),
    (0x6a, "write_idtr"),
    (0x6b, "write_gdtr"),
    (0x6c, "write_ldtr"),
    (0x6d, "write_rt"),
    (0x6e, "rdtsc"),
    (0x6f, "rdpmc"),
    (0x70, "pushf"),
    (0x71, "popf"),
    (0x72, "cpuid"),
    (0x73, "rsm"),
    (0x74, "iret"),
    (0x75, "swint"),
    (0x76, "invd"),
    (0x77, "pause"),
    (0x78, "hlt"),
    (0x79, "invlpg"),
    (0x7a, "invlpga"),
    (0x7b, "io"),
    (0x7c, "msr"),
    (0x7d, "task_switch"),
    (0x7e, "ferr_freeze"),
    (0x7f, "shutdown"),
    (0x80, "vmrun"),
    (0x81, "hypercall"),
    (0x82, "vmload"),
    (0x83, "vmsave"),
    (0x84, "stgi"),
    (0x85, "clgi"),
    (0x86, "skinit"),
    (0x87, "rdtscp"),
    (0x88, "icebp"),
    (0x89, "wbinvd"),
    (0x8a, "monitor"),
    (0x8b, "mwait"),
    (0x8d, "xsetbv"),
    (0x8f, "write_efer_trap"),
    (0x90, "write_cr0_trap"),
    (0x94, "write_cr4_trap"),
    (0x98, "write_cr8_trap"),
    (0xa2, "invpcid"),
    (0xa5, "buslock"),
    (0xa6, "idle-halt"),
    (0x400, "npf"),
    (0x401, "avic_incomplete_ipi"),
    (0x402, "avic_unaccelerated_access"),
    (0x403, "vmgexit"),
];

/// Numbers and names: linux/kvm.h, those of x86.
const USER_REASONS: &[(u64, &str)] = &[
    (0, "UNKNOWN"),
    (1, "EXCEPTION"),
    (2, "IO"),
    (3, "HYPERCALL"),
    (4, "DEBUG"),
    (5, "HLT"),
    (6, "MMIO"),
    (7, "IRQ_WINDOW_OPEN"),
    (8, "SHUTDOWN"),
    (9, "FAIL_ENTRY"),
    (10, "INTR"),
    (11, "SET_TPR"),
    (12, "TPR_ACCESS"),
    (16, "NMI"),
    (17, "INTERNAL_ERROR"),
    (24, "SYSTEM_EVENT"),
    (26, "IOAPIC_EOI"),
    (27, "HYPERV"),
    (29, "X86_RDMSR"),
    (30, "X86_WRMSR"),
    (31, "DIRTY_RING_FULL"),
    (32, "AP_RESET_HOLD"),
    (33, "X86_BUS_LOCK"),
    (34, "XEN"),
    (37, "NOTIFY"),
    (39, "MEMORY_FAULT"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The description of the tracepoint in Linux 6.18; the names are in the last line.
    const FORMAT: &str = include_str!("../../../tactus-probe/tests/fixtures/kvm_exit.format");

    /// `{ 0x040 + 14, "PF excp" }` as a number and a name.
    fn pair(text: &str) -> Option<(u64, &str)> {
        let (number, rest) = text.trim().strip_prefix('{')?.split_once(", \"")?;
        let term = |text: &str| match text.trim().strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.trim().parse().ok(),
        };
        let terms: Option<Vec<u64>> = number.split('+').map(term).collect();
        Some((terms?.iter().sum(), rest.split('"').next()?))
    }

    #[test]
    fn reasons_are_called_what_the_kernel_calls_them() {
        let names = FORMAT.lines().last().unwrap();
        let mut lists = names.split("__print_symbolic(").skip(1);
        for isa in [VMX, SVM] {
            let list = lists.next().unwrap();
            let list = list.split("__print_flags").next().unwrap();
            let pairs: Vec<_> =
                list.split(" }").filter_map(|text| pair(text.get(text.find('{')?..)?)).collect();
            assert!(pairs.len() > 60, "{pairs:?}");
            for (number, name) in pairs.into_iter().filter(|(number, _)| *number < 0x408) {
                assert_eq!(reason(isa, number), name);
            }
        }
    }

    #[test]
    fn exits_to_user_space_are_called_what_the_kernel_calls_them() {
        const FORMAT: &str = include_str!("../../../tactus-probe/tests/fixtures/kvm_userspace_exit.format");
        let names = FORMAT.lines().last().unwrap().replace("\"KVM_EXIT_\" ", "");
        let pairs: Vec<_> =
            names.split(" }").filter_map(|text| pair(text.get(text.rfind('{')?..)?)).collect();
        assert!(pairs.len() > 25, "{pairs:?}");
        let told = |number: u64| pairs.iter().find(|(own, _)| *own == number).map(|(_, name)| *name);
        let own: Vec<_> =
            USER_REASONS.iter().filter_map(|(number, name)| Some((told(*number)?, *name))).collect();
        assert!(own.len() > 18 && own.iter().all(|(told, name)| told == name), "{own:?}");
        assert_eq!((user_reason(2), user_reason(4711)), ("IO".to_owned(), "reason 0x1267".to_owned()));
    }

    #[test]
    fn a_reason_without_a_name_is_its_number() {
        assert_eq!(reason(VMX, 5000), "reason 0x1388");
        assert_eq!(reason(SVM, 0x41f), "reason 0x41f");
        assert_eq!(reason(7, 12), "reason 0xc");
        assert_eq!(reason(SVM, 0x5f), "reason 0x5f");
    }
}
