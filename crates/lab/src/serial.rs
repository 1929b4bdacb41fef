//! The serial lines of a guest: lines that its scripts report, its console, and the user's keys.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls `hear` with each new complete line. Returns whether there was new text.
pub(crate) fn hear_new(
    channel: &mut File,
    line: &mut Vec<u8>,
    hear: &mut dyn FnMut(&str),
) -> io::Result<bool> {
    let mut new = Vec::new();
    channel.read_to_end(&mut new)?;
    for byte in &new {
        match byte {
            b'\n' => {
                hear(&String::from_utf8_lossy(line));
                line.clear();
            }
            b'\r' => {}
            byte => line.push(*byte),
        }
    }
    Ok(!new.is_empty())
}

pub(crate) fn copy_console(mut output: impl Read, mut console: File, echo: bool) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        let length = match output.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        console.write_all(&bytes[..length])?;
        if echo {
            // The guest continues even if the reader of standard output is gone.
            let mut stdout = io::stdout().lock();
            let _ = stdout
                .write_all(&bytes[..length])
                .and_then(|()| stdout.flush());
        }
    }
}

/// The escape key: followed by `x` it ends the guest, followed by itself it goes to the guest.
const ESCAPE: u8 = 0x01;

/// The key that ends the input.
const END_OF_INPUT: u8 = 0x04;

/// Copies keys to the guest, until Ctrl-A x.
pub(crate) fn copy_keys(mut keys: impl Read, mut input: impl Write, leave: &AtomicBool) {
    let mut escaped = false;
    let mut byte = [0];
    while let Ok(1) = keys.read(&mut byte) {
        match (escaped, byte[0]) {
            (false, ESCAPE) => {
                escaped = true;
                continue;
            }
            (true, b'x') => {
                leave.store(true, Ordering::Relaxed);
                return;
            }
            _ => escaped = false,
        }
        if input.write_all(&byte).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
    let _ = input
        .write_all(&[END_OF_INPUT])
        .and_then(|()| input.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("channel");
        std::fs::write(&path, "one\r\ntwo\nthr").unwrap();
        let mut channel = File::open(&path).unwrap();
        let (mut line, mut heard) = (Vec::new(), Vec::new());
        let mut hear = |text: &str| heard.push(text.to_owned());
        assert!(hear_new(&mut channel, &mut line, &mut hear).unwrap());
        assert!(!hear_new(&mut channel, &mut line, &mut hear).unwrap());
        File::options()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(b"ee\n"))
            .unwrap();
        assert!(hear_new(&mut channel, &mut line, &mut hear).unwrap());
        assert_eq!(heard, ["one", "two", "three"]);
    }

    #[test]
    fn a_key_sequence_ends_the_guest() {
        let leave = AtomicBool::new(false);
        let mut typed = Vec::new();
        copy_keys(&b"ls\x01\x01y\x01xz"[..], &mut typed, &leave);
        assert_eq!(typed, b"ls\x01y");
        assert!(leave.load(Ordering::Relaxed));
    }

    #[test]
    fn the_end_of_the_input_is_sent_to_the_guest() {
        let leave = AtomicBool::new(false);
        let mut typed = Vec::new();
        copy_keys(&b"ls\n"[..], &mut typed, &leave);
        assert_eq!(typed, b"ls\n\x04");
        assert!(!leave.load(Ordering::Relaxed));
    }
}
