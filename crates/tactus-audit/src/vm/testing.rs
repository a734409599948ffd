//! A machine for tests: QEMU with two vCPUs on the isolated CPUs 2 and 3, everything as it should be.

use crate::testing::{System, intel};

/// Its arguments, in the form that libvirt writes.
pub const ARGUMENTS: &str = concat!(
    r#"/usr/bin/qemu-system-x86_64 -name guest=rt,debug-threads=on -S -machine pc-q35-8.2,usb=off,mem-merge=off,"#,
    r#"memory-backend=pc.ram -accel kvm -cpu host,migratable=on,tsc-deadline=on,pmu=off,kvm-hint-dedicated=on "#,
    r#"-m size=4194304k -object {"qom-type":"memory-backend-file","id":"pc.ram","mem-path":"/dev/hugepages1G/libvirt/qemu/1-rt","#,
    r#""prealloc":true,"size":4294967296,"host-nodes":[0],"policy":"bind"} -overcommit mem-lock=on,cpu-pm=on "#,
    r#"-smp 2,sockets=1,dies=1,cores=2,threads=1 -object {"qom-type":"iothread","id":"iothread1"} -display none "#,
    r#"-no-user-config -nodefaults -blockdev {"driver":"host_device","filename":"/dev/vg/rt","aio":"native","#,
    r#""node-name":"libvirt-1-storage","cache":{"direct":true,"no-flush":false},"auto-read-only":true} "#,
    r#"-blockdev {"node-name":"libvirt-1-format","driver":"raw","file":"libvirt-1-storage","cache":{"direct":true}} "#,
    r#"-device {"driver":"virtio-blk-pci","drive":"libvirt-1-format","iothread":"iothread1","id":"virtio-disk0"} "#,
    r#"-netdev {"type":"tap","fd":"29","vhost":true,"vhostfd":"31","id":"hostnet0"} "#,
    r#"-device {"driver":"virtio-net-pci","netdev":"hostnet0","id":"net0","mac":"52:54:00:00:00:01"} "#,
    r#"-device {"driver":"vfio-pci","host":"0000:3b:00.0","id":"hostdev0"}"#,
);

/// Its threads, and two of the kernel's.
pub const THREADS: &str = "812\t812\t1\t400100\tOTHER\t0\t0,1\tqemu-system-x86\n\
    813\t812\t1\t400040\tOTHER\t0\t0,1\tIO mon_iothread\n\
    814\t812\t1\t400040\tOTHER\t0\t0,1\tIO iothread1\n\
    815\t812\t1\t400040\tFIFO\t1\t2\tCPU 0/KVM\n\
    816\t812\t1\t400040\tFIFO\t1\t3\tCPU 1/KVM\n\
    817\t812\t1\t404040\tOTHER\t0\t0,1\tvhost-812\n\
    818\t818\t2\t208040\tOTHER\t0\t0,1\tkvm-pit/812\n\
    2\t2\t0\t208040\tOTHER\t0\t0,1\tkthreadd";

/// The host that it runs on.
pub fn host() -> System {
    intel(&[
        ("threads:0", THREADS),
        ("vm:812:name", "qemu-system-x86"),
        ("vm:812:uid", "64055"),
        ("vm:812:vcpus", "0-1"),
        ("vm:812:cmdline", ARGUMENTS),
        ("vm:812:VmLck", "310224 kB"),
        ("vm:812:VmRSS", "402112 kB"),
        ("vm:812:hugepages", "4 kB: 402112, 1048576 kB: 4194304"),
    ])
}

/// The same with something else in the threads.
pub fn threads(of: &str, instead: &str) -> System {
    assert!(THREADS.contains(of), "{of}");
    host().and("threads:0", &THREADS.replace(of, instead))
}

/// The same with something else in the arguments.
pub fn arguments(of: &str, instead: &str) -> System {
    assert!(ARGUMENTS.contains(of), "{of}");
    host().and("vm:812:cmdline", &ARGUMENTS.replace(of, instead))
}

/// A machine beside it, of process 900, with two vCPUs on these CPUs.
pub fn beside(system: System, cpus: &str) -> System {
    let more = format!(
        "900\t900\t1\t400100\tOTHER\t0\t{cpus}\tqemu-system-x86\n901\t900\t1\t400040\tOTHER\t0\t{cpus}\tCPU 0/KVM\n\
902\t900\t1\t400040\tOTHER\t0\t{cpus}\tCPU 1/KVM"
    );
    let arguments = "qemu-system-x86_64 -name other -machine q35 -accel kvm -m 2G";
    system.with(&[
        ("threads:1", &more),
        ("vm:900:name", "qemu-system-x86"),
        ("vm:900:uid", "0"),
        ("vm:900:vcpus", "0-1"),
        ("vm:900:cmdline", arguments),
    ])
}
