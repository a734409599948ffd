//! The processor's description of itself (CPUID).

/// Answers of CPUID by the names of their readings: eax, ebx, ecx, edx; `None` for a leaf that this
/// processor does not have.
#[cfg(target_arch = "x86_64")]
pub fn cpuid_leaves() -> Vec<(String, Option<[u32; 4]>)> {
    use core::arch::x86_64::__cpuid_count;
    const BASIC: &[u32] = &[0x0, 0x1, 0x6, 0x7, 0xa, 0x10, 0x15, 0x16];
    const HYPERVISOR: &[u32] = &[0x4000_0000, 0x4000_0001];
    const EXTENDED: &[u32] = &[0x8000_0007, 0x8000_0008];
    const HYPERVISOR_PRESENT: u32 = 1 << 31;
    let virtual_machine = __cpuid_count(1, 0).ecx & HYPERVISOR_PRESENT != 0;
    // A leaf above the highest answers as another one would (Intel's manual, volume 2, CPUID).
    let highest = |leaf: u32| match leaf {
        0x4000_0000.. if leaf < 0x8000_0000 && !virtual_machine => 0,
        // KVM said 0 for "the one above" (Documentation/virt/kvm/x86/cpuid.rst).
        0x4000_0000.. if leaf < 0x8000_0000 => __cpuid_count(0x4000_0000, 0).eax.max(0x4000_0001),
        0x8000_0000.. => __cpuid_count(0x8000_0000, 0).eax,
        _ => __cpuid_count(0, 0).eax,
    };
    [BASIC, HYPERVISOR, EXTENDED]
        .concat()
        .into_iter()
        .map(|leaf| {
            let answer = (leaf <= highest(leaf)).then(|| {
                let answer = __cpuid_count(leaf, 0);
                [answer.eax, answer.ebx, answer.ecx, answer.edx]
            });
            (format!("cpuid:{leaf:#x}:0"), answer)
        })
        .collect()
}

/// Other processors have no CPUID.
#[cfg(not(target_arch = "x86_64"))]
pub fn cpuid_leaves() -> Vec<(String, Option<[u32; 4]>)> {
    Vec::new()
}

/// Asks the processor once.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn ask_cpuid() {
    std::hint::black_box(core::arch::x86_64::__cpuid(0));
}

/// Whether this is a cell of Jailhouse, by the hypervisor's signature.
#[cfg(target_arch = "x86_64")]
pub fn is_cell() -> bool {
    use core::arch::x86_64::__cpuid;
    let said = __cpuid(0x4000_0000);
    let name = [said.ebx, said.ecx, said.edx].map(u32::to_le_bytes).concat();
    __cpuid(1).ecx >> 31 == 1 && name == b"Jailhouse\0\0\0"
}
