"""Tries what the unit's sandbox forbids, one act after the other, and prints `denied` or `allowed` for each.

Run in the sandbox all must be denied; run as root without one most are allowed, which shows that the acts are what they are called.
Each is in a process of its own, so that none can spoil the next. Only what is refused by the system counts as denied: an act that
fails for another reason is `broken`.
"""

import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
REFUSED = {errno.EPERM, errno.EACCES, errno.EROFS, errno.EAFNOSUPPORT, errno.ENOSYS, errno.ENOENT, errno.EUSERS}


def call(number, *arguments):
    """A system call by its number, those of x86-64 and of the newer machines."""
    ctypes.set_errno(0)
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def checked(result):
    if result == -1 or result == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def write(path):
    with open(path, "w") as file:
        file.write("x")
    os.unlink(path)


def overwrite(path):
    """Opens what is there for writing, and leaves it as it is."""
    os.close(os.open(path, os.O_WRONLY))


def listing(path):
    os.listdir(path)


def other_processes():
    """Of processes of other users not even the command line is to be seen."""
    with open("/proc/1/cmdline") as file:
        file.read()


def trace():
    pid = int(sys.argv[1])
    if libc.ptrace(16, pid, None, None) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")
    libc.ptrace(17, pid, None, None)


def signal_others():
    os.kill(int(sys.argv[1]), signal.SIGCONT)


def mount():
    checked(libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
    libc.umount(b"/tmp")


def chroot():
    os.chroot("/tmp")


def unshare(flags):
    checked(libc.unshare(flags))


def load_module():
    with open("/tmp/empty.ko", "w+b") as file:
        number = {"x86_64": 313, "aarch64": 273}[os.uname().machine]
        call(number, file.fileno(), b"", 0)


def raw_socket():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)


def family(number, kind=socket.SOCK_RAW):
    socket.socket(number, kind)


def low_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 81))


def become_root():
    os.setresuid(0, 0, 0)


def drop_groups():
    os.setgroups([])


def setuid_file():
    path = "/tmp/setuid"
    with open(path, "w"):
        pass
    os.chmod(path, 0o4755)


def setuid_program():
    """A program that would become root; its copy of `id` says who it became."""
    ran = subprocess.run(["/opt/test/rooted", "-u"], capture_output=True, text=True, check=False)
    if ran.stdout.strip() != "0":
        raise PermissionError(errno.EPERM, "it ran as " + ran.stdout.strip())


def writable_code():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.close()


def code_made_later():
    libc.mmap.restype = ctypes.c_void_p
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    page = checked(libc.mmap(None, 4096, 3, 0x22, -1, 0))
    checked(libc.mprotect(page, 4096, 5))


def clock_settime():
    import time

    time.clock_settime(time.CLOCK_REALTIME, time.time())


def host_name():
    socket.sethostname(socket.gethostname())


def realtime():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


def personality():
    checked(libc.personality(0x0040000))


def limit(which, most):
    try:
        resource.setrlimit(which, (most, most))
    except ValueError as error:
        # So Python says EPERM here.
        raise PermissionError(errno.EPERM, str(error)) from error


def raise_limit():
    limit(resource.RLIMIT_NOFILE, 1 << 19)


def core_file():
    limit(resource.RLIMIT_CORE, 1 << 20)


def priority():
    os.setpriority(os.PRIO_PROCESS, 0, -5)


def device():
    os.mknod("/tmp/disk", 0o600 | 0o060000, os.makedev(7, 0))


def kernel_log():
    if libc.klogctl(3, ctypes.create_string_buffer(64), 64) == -1:
        raise OSError(ctypes.get_errno(), "klogctl")


def bpf():
    attributes = struct.pack("IIIII", 1, 4, 4, 1, 0) + bytes(100)
    call({"x86_64": 321, "aarch64": 280}[os.uname().machine], 0, attributes, len(attributes))


def swap():
    checked(libc.swapoff(b"/nonexistent"))


def reboot():
    """Asks only whether it might: the magic number is wrong, which is judged after the right to it."""
    if libc.syscall({"x86_64": 169, "aarch64": 142}[os.uname().machine], 0, 0, 0, 0) == -1:
        error = ctypes.get_errno()
        if error != errno.EINVAL:
            raise OSError(error, "reboot")


NAMESPACES = {"user": 0x10000000, "mount": 0x00020000, "net": 0x40000000, "pid": 0x20000000}

ACTS = {
    "write into /etc": lambda: write("/etc/probe"),
    "write into /usr": lambda: write("/usr/probe"),
    "write into /boot": lambda: write("/boot/probe"),
    "write into /home": lambda: write("/home/shop/probe"),
    "write into /root": lambda: write("/root/probe"),
    "write into /srv": lambda: write("/srv/probe"),
    "write into /var/tmp of others": lambda: overwrite("/var/tmp/probed"),
    "write its own config": lambda: overwrite("/etc/tilld/config.toml"),
    "write its own unit": lambda: overwrite("/usr/lib/systemd/system/tilld.service"),
    "read /root": lambda: listing("/root"),
    "read /etc/shadow": lambda: open("/etc/shadow").close(),
    "see other users' processes": other_processes,
    "trace another process": trace,
    "signal another user's process": signal_others,
    "mount": mount,
    "chroot": chroot,
    "a new user namespace": lambda: unshare(NAMESPACES["user"]),
    "a new mount namespace": lambda: unshare(NAMESPACES["mount"]),
    "a new network namespace": lambda: unshare(NAMESPACES["net"]),
    "a new process namespace": lambda: unshare(NAMESPACES["pid"]),
    "load a kernel module": load_module,
    "a raw socket": raw_socket,
    "a packet socket": lambda: family(socket.AF_PACKET),
    "a netlink socket": lambda: family(socket.AF_NETLINK),
    "a port below 1024": low_port,
    "become root": become_root,
    "leave its groups": drop_groups,
    "make a setuid file": setuid_file,
    "become root by a setuid program": setuid_program,
    "memory to write and run": writable_code,
    "memory to run that was written": code_made_later,
    "set the clock": clock_settime,
    "set the host's name": host_name,
    "real-time priority": realtime,
    "another personality": personality,
    "a higher limit of files": raise_limit,
    "a core file": core_file,
    "a higher priority": priority,
    "make a device": device,
    "open a disk's device": lambda: overwrite("/dev/loop-control"),
    "read the kernel's log": kernel_log,
    "change a tunable of the kernel": lambda: overwrite("/proc/sys/kernel/domainname"),
    "change a control group": lambda: os.mkdir("/sys/fs/cgroup/probe"),
    "load a BPF program": bpf,
    "end swapping": swap,
    "reboot": reboot,
}


def tried(act):
    """How one act ends, in a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            act()
            said = "allowed"
        except OSError as error:
            said = "denied" if error.errno in REFUSED else f"broken {error}"
        except BaseException as error:
            said = f"broken {error!r}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    # A filter may end it instead.
    return said or ("denied" if os.WIFSIGNALED(status) else "broken")


def main():
    for name, act in ACTS.items():
        print(f"{tried(act):8} {name}", flush=True)
    print(f"{len(ACTS)} acts", flush=True)


main()
