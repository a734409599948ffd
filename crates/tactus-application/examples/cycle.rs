//! A control loop that marks its cycles for tactus.
//!
//! `cargo run --release -p tactus-application --example cycle -- /dev/shm/control 1000 10000`: 10000 cycles of 1 ms.

use tactus_application::{Application, now, sleep_until};

fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let file = words.next().unwrap_or_else(|| "/dev/shm/control".into());
    let mut number = |default| words.next().and_then(|word| word.parse().ok()).unwrap_or(default);
    let (period_ns, cycles): (u64, u64) = (number(1_000) * 1_000, number(10_000));

    let mut application = Application::open(file, period_ns)?;
    let mut due = now();
    for _ in 0..cycles {
        due += period_ns;
        sleep_until(due);
        application.start(due);
        // Here is what the program is for.
        std::hint::black_box((0..1_000_u64).sum::<u64>());
        application.end();
    }
    Ok(())
}
