"""slurmdbd with MariaDB for a test's cluster, both below one folder: no port of the database is open, only a socket."""

import os
import pathlib
import shutil
import subprocess

import cluster

PROGRAMS = ("slurmdbd", "sacctmgr", "sacct", "mariadbd", "mariadb", "mariadb-install-db")


def why_not():
    missing = [program for program in PROGRAMS if shutil.which(program, path=cluster.search_path()) is None]
    if missing:
        return f"{', '.join(missing)} not found; install slurmdbd, slurm-client and mariadb-server"
    return cluster.why_not()


class AccountedCluster(cluster.Cluster):
    """A cluster whose jobs are accounted. Slurm 22.05 knows the names gres/gpumem and gres/gpuutil, but measures neither."""

    def __init__(self, folder, nodes, extra=""):
        self.port = cluster.free_ports(1)[0]
        accounting = "\n".join([
            "AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=127.0.0.1", f"AccountingStoragePort={self.port}",
            f"AccountingStoragePass={folder}/munge/socket", "AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:h100,gres/gpumem,gres/gpuutil",
            "AccountingStoreFlags=job_comment", "JobAcctGatherFrequency=1"])
        super().__init__(folder, nodes, f"{extra}\n{accounting}", gather="jobacct_gather/linux")
        self.mysql = self.folder / "mysql.sock"
        self.env["MYSQL_UNIX_PORT"] = str(self.mysql)  # where libmariadb looks for "localhost"

    def start_accounting(self):
        data = self.folder / "mysql"
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root", "--skip-test-db",
                        "--auth-root-authentication-method=socket"], env=self.env, check=True, stdout=subprocess.DEVNULL)
        self.start_daemon("mariadbd", ["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={self.mysql}", "--user=root",
                                       "--skip-networking", f"--pid-file={self.folder}/mariadbd.pid", "--innodb-buffer-pool-size=32M",
                                       "--innodb-log-file-size=64M", "--skip-log-bin"])
        self.wait_for(self.mysql.exists, "MariaDB's socket")
        conf = self.folder / "etc/slurmdbd.conf"
        conf.write_text("\n".join([
            "AuthType=auth/munge", f"AuthInfo=socket={self.socket}", "DbdHost=localhost", "DbdAddr=127.0.0.1", f"DbdPort={self.port}",
            "SlurmUser=root", f"LogFile={self.folder}/log/slurmdbd", f"PidFile={self.folder}/slurmdbd.pid",
            "StorageType=accounting_storage/mysql", "StorageHost=localhost", "StorageUser=root", "StorageLoc=slurm_acct_db"]) + "\n")
        conf.chmod(0o600)
        self.start_daemon("slurmdbd", ["slurmdbd", "-D"])
        self.wait_for(lambda: self.run(["sacctmgr", "-i", "show", "cluster", "-n"], check=False).returncode == 0, "slurmdbd's answer")
        self.run(["sacctmgr", "-i", "add", "cluster", "fleet"])

    def sql(self, statement):
        return self.run(["mariadb", "--no-defaults", f"--socket={self.mysql}", "--user=root", "-N", "-B", "slurm_acct_db", "-e",
                         statement]).stdout

    def stop(self):
        super().stop()
        for name in ("slurmdbd", "mariadbd"):
            if name in self.daemons:
                self.stop_daemon(name)
