//! `interrupt`: from a device's interrupt to what its handler wrote.

use crate::catalogue::declare::word;
use crate::wire::row::choice;

word! {
    /// A card in the guest (`to`) raises an interrupt every `interval` and times until it sees what the guest's handler
    /// wrote. The card is QEMU's ivshmem-doorbell, with a thread of this environment (of the kind `host`) behind it: it
    /// writes a number to memory that both share, raises the vector of MSI-X by an eventfd and polls the memory, on a CPU of
    /// its own, until the guest has copied the number to another place. A latency is the time from raising to seeing, in ns.
    ///
    /// The card keeps its schedule: while an interrupt is unanswered none is raised, and the periods that pass are counted
    /// as overruns and put back in the corrected quantiles. One that is unanswered for a second is lost: it counts as one of
    /// a second, and a note says how many there were. After three in a row the measurement ends. A guest that writes what
    /// was never sent ends it at once.
    ///
    /// A real card takes its place with `card`: a PCI device of this environment, described by a file, whose interrupts
    /// come by VFIO to a thread of SCHED_FIFO on the one CPU of `cpus`. Another CPU raises them, by a register, and sees
    /// that the handler has written its answer to another; a latency is that time, or what the card's own clock says where
    /// it has one. There is no `to` then. A guest of the kind `qemu` has such a device by its key `pci`; on the host it must
    /// be bound to vfio-pci beforehand.
    ///
    /// What raising and polling take themselves is measured beforehand, against a thread on another CPU that answers at
    /// once, and is said in a note; it is part of every latency.
    #[derive(Default)]
    pub struct Interrupt = Measure "interrupt": "from an interrupt that a card raises in a guest to what the handler wrote" {
        /// Who in the guest answers: the handler of its interrupt, which in a Linux guest is a process (`handler`) or a part
        /// of the kernel (`kernel`), or somebody who polls the memory (`poll`).
        pub answer: Option<AnswerBy> = AnswerBy::Handler;
        /// How far a due time is moved at random, in per cent of the interval, so that noise with the same period cannot
        /// hide; 0: not at all.
        pub spread: Option<u32> = 0, 0..=100;
        /// Interrupts before those that count.
        pub warm_up: Option<u32> = 100, 0..=100_000;
        /// A real card: the file that describes it, beside the plan, or the description itself (several lines of TOML).
        pub card: Option<String>;
    }
    counts "interrupts";
    peer To;
}

choice! {
    /// Who in the guest answers what the card wrote.
    pub enum AnswerBy {
        /// The handler of its interrupt copies the number. In a Linux guest it is a process, which has the card by VFIO.
        Handler = "handler",
        /// A handler in the kernel of a Linux guest, by a module.
        Kernel = "kernel",
        /// The memory is polled, and nothing is raised.
        Poll = "poll",
    }
}
