//! No unwinder. The probe aborts when it panics and has no unwind tables (`small.ld`), so that nothing could be walked
//! along; but the standard library would bring all that walks (libunwind) and all that reads debug information for a
//! backtrace (gimli, addr2line, miniz), a fifth of the program. Here are the functions of the unwinder that it names
//! (Itanium C++ ABI: Exception Handling, level I), so that no other one is linked; as the walk calls nobody back, link-time
//! optimization leaves out what it would have been for. The message of a panic and its place in the source stay.
//!
//! Should a standard library name more of them, the linker says `duplicate symbol`: that name belongs into the list.
#![expect(unsafe_code, reason = "these names are the unwinder's")]

/// Walks the stack: its end is reached at once.
// SAFETY: no other definition of the name is linked, and this one does what the ABI says of a stack without frames.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace() -> core::ffi::c_int {
    /// `_URC_END_OF_STACK`.
    const END_OF_STACK: core::ffi::c_int = 5;
    END_OF_STACK
}

/// What only somebody who unwinds would call.
macro_rules! never {
    ($($name:ident)+) => { $(
        // SAFETY: no other definition of the name is linked. Nobody unwinds, so that nobody calls it.
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> ! {
            std::process::abort()
        }
    )+ };
}

never! {
    _Unwind_GetDataRelBase _Unwind_GetIP _Unwind_GetIPInfo _Unwind_GetLanguageSpecificData _Unwind_GetRegionStart
    _Unwind_GetTextRelBase _Unwind_Resume _Unwind_SetGR _Unwind_SetIP
}
