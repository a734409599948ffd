//! `interrupt`: from a device's interrupt to what its handler wrote.

use crate::catalogue::declare::word;
use crate::wire::row::choice;

word! {
    /// A card in the guest (`to`) raises an interrupt every `interval`. It measures the time until it sees the answer
    /// of the guest's handler. The card is QEMU's ivshmem-doorbell with a thread of this environment (of the kind
    /// `host`) behind it. The thread writes a number to memory that it shares with the guest, and raises the vector of
    /// MSI-X through an eventfd. It then polls the memory, on a separate CPU, until the guest has copied the number to
    /// another place. A latency is the time from raising to seeing, in ns.
    ///
    /// The card keeps its schedule. It raises no interrupt while an earlier one is unanswered. The periods that pass
    /// meanwhile are overruns, and the corrected quantiles include them. An interrupt that is unanswered for a second
    /// is lost. It counts as a latency of one second, and a note gives the number of lost ones. After three in a row
    /// the measurement ends. A guest that answers with a number that was never sent ends it at once.
    ///
    /// `card` replaces this card with a real one: a PCI device of this environment, described by a file. Its interrupts
    /// come through VFIO to a SCHED_FIFO thread on the one CPU of `cpus`. Another CPU raises them through a register of
    /// the card, and sees the handler's answer in another register. A latency is that time. If the card has a clock,
    /// the card's clock gives it. With `card` there is no `to`. A guest of the kind `qemu` gets such a device through
    /// its key `pci`. On the host, bind it to vfio-pci first.
    ///
    /// The time of raising and polling alone is measured first, with a thread on another CPU that answers at once. A
    /// note gives it. It is part of every latency.
    #[derive(Default)]
    pub struct Interrupt = Measure "interrupt": "from an interrupt that a card raises in a guest to the \
                                                 handler's write" {
        /// What answers in the guest: the handler of the interrupt, or a loop that polls the memory (`poll`). In a
        /// Linux guest the handler is a process (`handler`) or part of the kernel (`kernel`).
        pub answer: Option<AnswerBy> = AnswerBy::Handler;
        /// Random shift of each due time, in per cent of the interval. It exposes noise that has the same period. 0:
        /// none.
        pub spread: Option<u32> = 0, 0..=100;
        /// Number of interrupts before the counted ones.
        pub warm_up: Option<u32> = 100, 0..=100_000;
        /// A real card: the name of the file beside the plan that describes it, or the description itself (several
        /// lines of TOML).
        pub card: Option<String>;
    }
    counts "interrupts";
    peer To;
}

choice! {
    /// What in the guest answers the card.
    pub enum AnswerBy {
        /// The handler of the interrupt copies the number. In a Linux guest it is a process that has the card through
        /// VFIO.
        Handler = "handler",
        /// A handler in the kernel of a Linux guest, as a module.
        Kernel = "kernel",
        /// The guest polls the memory, and no interrupt is raised.
        Poll = "poll",
    }
}
