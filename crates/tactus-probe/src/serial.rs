//! A probe at the end of a serial line: it waits for a greeting, and stays when a session ends.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::termios::{ControlModes, OptionalActions, isatty, tcgetattr, tcsetattr};

use crate::channel::{Channel, SessionEnd};
use crate::session::converse;
use crate::{sys, worker};

/// Bits on the line for one byte.
const BITS: u64 = 10;
/// The part of the line that this probe may fill, in per cent: a kernel may also write on it.
const SHARE: u64 = 80;

/// How long nothing may be heard while a job runs, in ns: the host side gives a sign of life every few seconds.
const DESERTED_NS: u64 = 60_000_000_000;

/// The assumed speed in baud of a device that is not a terminal and has no stated speed, such as a port between two
/// machines. The output stays narrow, because a line without a reader would block a writer for ever.
const PORT: u32 = 1_000_000;

/// How many bytes a second may be written on a line of this speed.
fn per_second(speed: Option<u32>) -> u64 {
    (u64::from(speed.unwrap_or(PORT)) / BITS * SHARE / 100).max(1)
}

/// Serves until the line ends.
///
/// # Errors
/// When it cannot be opened or set, or breaks.
pub fn serve(device: &Path, baud: Option<u32>) -> io::Result<()> {
    // Without waiting for a carrier, which three wires do not have.
    let from =
        open(device, OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&from, fcntl_getfl(&from)? - OFlags::NONBLOCK)?;
    let mut speed = baud;
    if isatty(&from) {
        let mut settings = tcgetattr(&from)?;
        settings.make_raw();
        settings.control_modes -= ControlModes::CRTSCTS | ControlModes::CSTOPB | ControlModes::PARENB;
        settings.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        if let Some(baud) = baud {
            settings.set_speed(baud)?;
        }
        tcsetattr(&from, OptionalActions::Now, &settings)?;
        speed = Some(settings.output_speed());
    }
    sys::on_signal(libc::SIGUSR1, sys::OnSignal::Wake);
    worker::adopt_orphans();
    let to = from.try_clone()?;
    let mut channel = Channel::new(from, to);
    channel.narrow(per_second(speed));
    channel.expect_signs_of_life(DESERTED_NS);
    while converse(&mut channel)? != SessionEnd::Ended {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_filled_and_one_without_a_speed_is_not_starved() {
        assert_eq!(per_second(Some(115_200)), 9216);
        assert_eq!(per_second(Some(0)), 1);
        assert_eq!(per_second(None), 80_000);
    }
}
