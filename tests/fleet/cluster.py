"""A Slurm cluster on the loopback interface, for tests: munged, slurmctld and one slurmd per node, all below one folder.

Needs Debian's slurmctld, slurmd, slurm-client and munge, and root (slurmd starts jobs for users).
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "scancel")


def why_not():
    """Why no cluster can be started here; empty if one can."""
    missing = [program for program in PROGRAMS if shutil.which(program, path=search_path()) is None]
    if missing:
        return f"{', '.join(missing)} not found; install slurmctld, slurmd, slurm-client and munge"
    return "" if os.geteuid() == 0 else "slurmd must be started by root"


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def parent_of(process):
    try:
        return int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def command_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


class Cluster:
    """`nodes` maps the name of a node to the types of its GPUs: "a100", "a100,h100"."""

    def __init__(self, folder, nodes, extra="", gather="jobacct_gather/none"):
        self.folder = pathlib.Path(folder)
        self.nodes = dict(nodes)
        self.extra = extra
        self.gather = gather
        self.daemons = {}
        self.conf = self.folder / "etc/slurm.conf"
        self.socket = self.folder / "munge/socket"
        self.env = dict(os.environ, SLURM_CONF=str(self.conf), PATH=search_path())
        for name in [name for name in self.env if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del self.env[name]

    def write_configuration(self):
        for name in ("etc", "state", "log", "dev", "munge", "spool"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        os.chmod(self.folder / "munge", 0o755)
        controller, *ports = free_ports(1 + len(self.nodes))
        host = socket.gethostname().split(".")[0]
        lines = [
            "ClusterName=fleet", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={controller}", "SlurmUser=root",
            "SlurmdUser=root", f"AuthInfo=socket={self.socket},cred_expire=10", "AuthType=auth/munge", "CryptoType=crypto/munge",
            f"StateSaveLocation={self.folder}/state", f"SlurmdSpoolDir={self.folder}/spool/%n",
            f"SlurmctldLogFile={self.folder}/log/slurmctld", f"SlurmdLogFile={self.folder}/log/slurmd.%n",
            f"SlurmctldPidFile={self.folder}/slurmctld.pid", f"SlurmdPidFile={self.folder}/slurmd.%n.pid",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", f"JobAcctGatherType={self.gather}",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU", "GresTypes=gpu", "SwitchType=switch/none",
            "MpiDefault=none", "ReturnToService=2", "SlurmdParameters=config_overrides", "SchedulerType=sched/backfill",
            "SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0", "KillWait=2", "MinJobAge=300",
            "SlurmdTimeout=10", "MessageTimeout=30", "JobRequeue=1", "MailProg=/bin/true", self.extra]
        gres = []
        for (name, types), port in zip(self.nodes.items(), ports):
            gpus = types.split(",")
            for number, gpu in enumerate(gpus):
                device = self.folder / f"dev/{name}-gpu{number}"
                device.touch()
                gres.append(f"NodeName={name} Name=gpu Type={gpu} File={device}")
            lines.append(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 "
                         f"Gres={','.join(f'gpu:{gpu}:1' for gpu in gpus)}")
        lines.append(f"PartitionName=gpu Nodes={','.join(self.nodes)} Default=YES MaxTime=60 State=UP")
        self.conf.write_text("\n".join(lines) + "\n")
        (self.folder / "etc/gres.conf").write_text("\n".join(gres) + "\n")
        (self.folder / "etc/cgroup.conf").write_text("CgroupAutomount=no\n")
        key = self.folder / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)

    def start_daemon(self, name, words):
        log = open(self.folder / f"log/{name}.out", "ab")
        self.daemons[name] = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                              start_new_session=True)
        log.close()

    def start_controller(self):
        self.start_daemon("slurmctld", ["slurmctld", "-D", "-f", str(self.conf)])

    def start_node(self, name):
        self.start_daemon(name, ["slurmd", "-D", "-N", name, "-f", str(self.conf)])

    def start(self):
        self.write_configuration()
        self.start_daemon("munged", ["munged", "--foreground", "--force", f"--socket={self.socket}",
                                     f"--key-file={self.folder}/munge/key", f"--log-file={self.folder}/log/munged",
                                     f"--pid-file={self.folder}/munge/pid", f"--seed-file={self.folder}/munge/seed"])
        self.wait_for(lambda: self.socket.exists(), "munged's socket")
        self.start_accounting()
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        self.wait_for(lambda: self.states() == {name: "idle" for name in self.nodes}, "all nodes idle")

    def start_accounting(self):
        """Nothing; accounting.AccountedCluster keeps records."""

    def states(self):
        done = self.run(["sinfo", "-h", "-N", "-o", "%N %T"], check=False)
        return dict(line.split() for line in done.stdout.splitlines()) if done.returncode == 0 else {}

    def wait_for(self, condition, what, seconds=90):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"{what} was not reached within {seconds} s; logs: {self.folder}/log")
            time.sleep(0.2)

    def run(self, words, check=True, **options):
        done = subprocess.run([str(word) for word in words], env=dict(self.env, **options.pop("env", {})), text=True,
                              stdin=options.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{words} exited with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def stop_daemon(self, name, how=signal.SIGTERM):
        process = self.daemons.pop(name)
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill_node(self, name):
        """As if its power failed: slurmd and everything that runs on the node end at once."""
        processes = self.processes_of(name)
        self.stop_daemon(name, signal.SIGKILL)
        for process in processes:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def processes_of(self, name):
        """Processes of jobs on a node, known by their environment; before them their slurmstepd, which would report their end."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            mine = f"SLURM_CONF={self.conf}".encode() in environment
            if mine and f"SLURMD_NODENAME={name}".encode() in environment:
                found.append(int(folder.name))
        managers = {parent for parent in map(parent_of, found) if command_of(parent) == "slurmstepd"}
        return [*managers, *(process for process in found if process not in managers)]

    def stop(self):
        for name in ("slurmctld", *self.nodes):
            if name in self.daemons:
                self.stop_daemon(name)
        for name in self.nodes:
            for process in self.processes_of(name):
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        if "munged" in self.daemons:
            self.stop_daemon("munged")
        self.stop_strays()

    def stop_strays(self):
        """slurmstepd of this cluster that outlived their jobs, known by the configuration they were started with."""
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (folder / "comm").read_text().strip() != "slurmstepd":
                    continue
                if f"SLURM_CONF={self.conf}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)
            except (OSError, ProcessLookupError):
                continue

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()


class ClusterTest(unittest.TestCase):
    """The tests of a class share a folder with a cluster in it and memfathom's database."""

    maxDiff = None
    name = "fleet"

    @classmethod
    def make_cluster(cls, folder):
        """The cluster, not yet started."""
        raise NotImplementedError

    @classmethod
    def prepare(cls):
        """What is done before the cluster starts."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"memfathom-{cls.name}-"))
        cls.database = cls.folder / "shared/fleet.db"
        cls.database.parent.mkdir()
        cls.slurm = cls.make_cluster(cls.folder / "slurm")
        cls.slurm.env.update(MEMFATHOM_DB=str(cls.database), HOME=str(cls.folder), XDG_CACHE_HOME=str(cls.folder / "cache"))
        cls.slurm.env.pop("MEMFATHOM_FLEET_DB", None)
        cls.prepare()
        try:
            cls.slurm.start()
        except BaseException:
            cls.slurm.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.slurm.stop()
        shutil.rmtree(cls.folder, ignore_errors=True)
