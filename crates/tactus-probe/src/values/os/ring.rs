//! Context switches among several processes on one CPU, each of which has memory that it reads whenever it is its turn
//! (`lat_ctx` of lmbench).

use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use tactus_model::outcome::Point;

use super::super::{Bench, Operation, alone, partner, timed};

/// How many processes take part, this one among them.
const PROCESSES: [u8; 4] = [2, 4, 8, 16];
/// Bytes of a line: one word of each is read.
const LINE: usize = 64;

/// Processes that hand a byte on from one to the next. It says how many are still to have it; the last one gives it back.
struct Ring {
    to: OwnedFd,
    back: OwnedFd,
    others: Vec<u32>,
    memory: Vec<u8>,
}

impl Ring {
    fn of(processes: u8, bytes: usize) -> io::Result<Self> {
        let (back, give_back) = rustix::pipe::pipe()?;
        let (first, to) = rustix::pipe::pipe()?;
        let (mut from, mut others) = (first, Vec::new());
        for _ in 1..processes {
            let (next, hand_on) = rustix::pipe::pipe()?;
            others.push(partner(|| {
                let memory = vec![1; bytes];
                loop {
                    let left = take(&from, &memory)?;
                    let to = if left == 0 { &give_back } else { &hand_on };
                    rustix::io::write(to, &[left.saturating_sub(1)])?;
                }
            })?);
            from = next;
        }
        Ok(Self { to, back, others, memory: vec![1; bytes] })
    }

    /// Once around this many processes.
    fn around(&self, processes: u8) -> io::Result<()> {
        // This process has it, and tells the first of the others how many come after it.
        rustix::io::write(&self.to, &[processes.saturating_sub(2)])?;
        take(&self.back, &self.memory).map(drop)
    }
}

/// Waits for the byte, and reads the memory.
fn take(from: &OwnedFd, memory: &[u8]) -> io::Result<u8> {
    let mut byte = [0];
    if rustix::io::read(from, &mut byte)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let sum = memory.iter().step_by(LINE).fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
    black_box(sum);
    Ok(byte[0])
}

/// A switch from one process to the next, by how many they are, each with so much memory.
pub fn switches(bytes: usize) -> io::Result<Vec<(Point, Bench)>> {
    let ring = Rc::new(Ring::of(PROCESSES.into_iter().max().unwrap_or(2), bytes)?);
    let bench = |processes: u8| {
        let own = Rc::clone(&ring);
        let run = move |batch| timed(|| (0..batch).try_for_each(|_| own.around(processes)));
        let partners = ring.others.iter().copied().take(usize::from(processes) - 1).collect();
        let bench = Bench { of: Operation::Parts(u32::from(processes)), partners, ..alone(run) };
        (Point::Processes(u64::from(processes)), bench)
    };
    Ok(PROCESSES.map(bench).into())
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

    use super::*;

    /// CPU time of each of the others, once all of them wait for the byte.
    fn times(ring: &Ring) -> Vec<u64> {
        let waits = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
        };
        while !ring.others.iter().all(waits) {
            std::thread::yield_now();
        }
        ring.others.iter().map(|pid| crate::sys::time_of(*pid)).collect()
    }

    #[test]
    fn the_byte_comes_back_from_as_many_processes_as_are_to_have_it() {
        let ring = Ring::of(5, 4096).unwrap();
        assert_eq!(ring.others.len(), 4);
        for processes in [2, 3, 5] {
            let before = times(&ring);
            (0..20).for_each(|_| ring.around(processes).unwrap());
            let had: Vec<bool> = times(&ring).iter().zip(before).map(|(now, before)| *now > before).collect();
            let first: Vec<bool> = (2..=5).map(|number| number <= processes).collect();
            assert_eq!(had, first, "{processes}");
        }
        for pid in ring.others.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
            kill_process(pid, Signal::KILL).unwrap();
            waitpid(Some(pid), WaitOptions::empty()).unwrap();
        }
    }
}
