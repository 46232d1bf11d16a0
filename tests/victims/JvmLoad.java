// SPDX-License-Identifier: GPL-3.0-or-later
// A virtual machine under load: null checks that the hardware makes (a SIGSEGV each), garbage of all ages, safepoints, native
// memory through zlib, monitors and timed waits. Each thread knows what must come out and says so when something else does.
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

public class JvmLoad {
	private static final class Node {
		long value;
		Node next;
	}

	private interface Work {
		void turn() throws Exception;
	}

	private static void wrong(String text) {
		System.err.println(text);
		System.err.flush();
		Runtime.getRuntime().halt(1);
	}

	private static void forever(Work work) {
		Thread t = new Thread(() -> {
			try {
				for (;;)
					work.turn();
			} catch (Throwable e) {
				wrong(Thread.currentThread().getName() + ": " + e);
			}
		});
		t.setDaemon(true);
		t.start();
	}

	private static long valueOf(Node n) {
		return n.value;
	}

	// Compiled code has no test for null: it reads, and the handler of SIGSEGV makes the exception.
	private static final class Nulls implements Work {
		private final Node[] nodes = new Node[64];
		private final Random random = new Random(1);

		Nulls() {
			for (int i = 0; i < nodes.length; i++) {
				nodes[i] = new Node();
				nodes[i].value = i;
			}
		}

		public void turn() throws Exception {
			int hole = random.nextInt(nodes.length), caught = 0;
			Node kept = nodes[hole];
			long sum = 0;
			nodes[hole] = null;
			for (int k = 0; k < 50; k++)
				for (int i = 0; i < nodes.length; i++)
					try {
						sum += valueOf(nodes[i]);
					} catch (NullPointerException e) {
						caught++;
					}
			nodes[hole] = kept;
			if (caught != 50)
				wrong(caught + " of 50 null pointers were noticed");
			if (sum != 50L * (64 * 63 / 2 - hole))
				wrong("the sum is " + sum);
			Thread.sleep(1);
		}
	}

	// A table of lists of all ages, and much that dies young.
	private static final class Garbage implements Work {
		private final Map<Integer, Node> table = new HashMap<>();
		private final Random random;
		private int turns;

		Garbage(int seed) {
			random = new Random(seed);
		}

		public void turn() throws Exception {
			int key = random.nextInt(200), length = 1 + random.nextInt(300);
			Node old = table.get(key);
			if (old != null) {
				long want = old.value;
				int n = 0;
				for (Node x = old; x != null; x = x.next, n++)
					if (x.value != want)
						wrong("a node has changed");
				if (n != want % 1000)
					wrong("a list of " + want % 1000 + " has " + n + " nodes");
			}
			Node head = null;
			for (int i = 0; i < length; i++) {
				Node x = new Node();
				x.value = key * 1000L + length;
				x.next = head;
				head = x;
			}
			table.put(key, head);
			if (++turns % 64 == 0)
				Thread.sleep(1);
		}
	}

	// malloc and free by zlib, and a result that is known.
	private static final class Native implements Work {
		private final Random random = new Random(3);

		public void turn() throws Exception {
			byte[] in = new byte[20000], out = new byte[20000], packed = new byte[30000];
			for (int i = 0; i < in.length; i++)
				in[i] = (byte) random.nextInt(16);
			CRC32 crc = new CRC32();
			crc.update(in);
			long want = crc.getValue();
			Deflater d = new Deflater(1);
			d.setInput(in);
			d.finish();
			int n = d.deflate(packed);
			d.end();
			Inflater u = new Inflater();
			u.setInput(packed, 0, n);
			int m = u.inflate(out);
			u.end();
			crc.reset();
			crc.update(out);
			if (m != in.length || crc.getValue() != want || !Arrays.equals(in, out))
				wrong("what was packed came out differently");
			Thread.sleep(1);
		}
	}

	// Safepoints on purpose: collections and stack traces of all threads.
	private static void safepoints() throws Exception {
		if (Thread.getAllStackTraces().size() < 5)
			wrong("threads are missing");
		System.gc();
		Thread.sleep(30);
	}

	private static void sleeper() throws Exception {
		long start = System.nanoTime();
		Thread.sleep(3);
		if (System.nanoTime() - start < 3_000_000L)
			wrong("Thread.sleep returned early");
		Object o = new Object();
		synchronized (o) {
			o.wait(2);
		}
	}

	public static void main(String[] args) throws Exception {
		ArrayBlockingQueue<Long> queue = new ArrayBlockingQueue<>(16);
		long[] sent = { 0 }, got = { 0 };
		forever(new Nulls());
		forever(new Garbage(1));
		forever(new Garbage(2));
		forever(new Native());
		forever(JvmLoad::safepoints);
		forever(JvmLoad::sleeper);
		forever(() -> {
			queue.put(sent[0]++);
			if (sent[0] % 32 == 0)
				Thread.sleep(1);
		});
		forever(() -> {
			Long x = queue.poll(20, TimeUnit.SECONDS);
			if (x == null || x != got[0]++)
				wrong("the queue gave " + x);
		});
		Thread.sleep(700); // until the null checks are compiled
		System.out.print("ready\n");
		System.out.flush();
		while (System.in.read() >= 0) {
		}
		System.exit(0);
	}
}
