//! The user's terminal in raw mode, for a guest.

use std::io;
use std::os::fd::AsFd;
use std::sync::Mutex;

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

/// The settings of the terminal before raw mode.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Raw mode, in which every key goes to the guest, until this is dropped.
pub(crate) struct Raw;

impl Raw {
    /// Begins raw mode; `None` if standard input is not a terminal.
    pub fn begin() -> Option<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(stdin.as_fd()).ok()?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        *BEFORE.lock().ok()? = Some(before);
        tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &raw).ok()?;
        Some(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the settings of the terminal.
pub fn restore() {
    if let Ok(mut before) = BEFORE.lock()
        && let Some(before) = before.take()
    {
        let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &before);
    }
}
