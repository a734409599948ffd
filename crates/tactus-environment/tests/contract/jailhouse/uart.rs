//! A UART with a socket at either end. It exists whether or not a program is connected, and is shared by a hypervisor
//! that writes lines, too.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Lines that a hypervisor and a root kernel write meanwhile.
const NOISE: &[u8] = b"[   14.574028] Jailhouse: not of the inmate\r\n<missed 312 bytes of console log>\r\n";

/// Dropping it ends it.
pub struct Uart {
    over: Arc<AtomicBool>,
}

/// The program that is connected to an end now.
type At = Arc<Mutex<Option<UnixStream>>>;

impl Uart {
    /// Opens `uart` and `uart.inmate` in a directory.
    pub fn open(dir: &Path) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let ends: [At; 2] = Default::default();
        for (own, name) in ["uart", "uart.inmate"].iter().enumerate() {
            let listener = UnixListener::bind(dir.join(name)).unwrap();
            listener.set_nonblocking(true).unwrap();
            let (over, own, other) = (Arc::clone(&over), Arc::clone(&ends[own]), Arc::clone(&ends[1 - own]));
            let noisy = *name == "uart.inmate";
            let twice = dir.join("twice");
            std::thread::spawn(move || serve(&listener, &over, &own, &other, noisy.then_some(&*twice)));
        }
        Self { over }
    }
}

impl Drop for Uart {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
    }
}

fn serve(listener: &UnixListener, over: &AtomicBool, own: &At, other: &At, inmate: Option<&Path>) {
    while !over.load(Ordering::Acquire) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        *own.lock().unwrap() = stream.try_clone().ok();
        carry(stream, over, other, inmate);
        *own.lock().unwrap() = None;
    }
    if let Some(stream) = own.lock().unwrap().take() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Carries bytes across until the program at this end disconnects. Bytes for an end without a program are lost, as on
/// a real one. `inmate`: it is the inmate's end; while that file exists, every byte comes twice.
fn carry(mut from: UnixStream, over: &AtomicBool, other: &At, inmate: Option<&Path>) {
    let mut buffer = [0; 1024];
    let mut lines = 0u32;
    while !over.load(Ordering::Acquire) {
        let length = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        let mut target = other.lock().unwrap();
        let Some(stream) = target.as_mut() else { continue };
        for piece in buffer[..length].split_inclusive(|byte| *byte == b'\n') {
            // A cell that writes to the UART and to the hypervisor's console, which is that UART.
            let twice = inmate.is_some_and(Path::exists);
            let piece: Vec<u8> = piece.iter().flat_map(|byte| vec![*byte; 1 + usize::from(twice)]).collect();
            let mut sent = stream.write_all(&piece);
            lines += u32::from(piece.ends_with(b"\n"));
            if inmate.is_some() && piece.ends_with(b"\n") && lines.is_multiple_of(50) {
                sent = sent.and_then(|()| stream.write_all(NOISE));
            }
            if sent.is_err() {
                break;
            }
        }
    }
}
