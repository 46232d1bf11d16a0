// SPDX-License-Identifier: GPL-3.0-or-later
// Threads that allocate on the Java heap (and so keep the collector busy) and outside it, and sleep; each checks itself.
import java.nio.ByteBuffer;
import java.util.Random;

public class Jvm {
	private static void wrong(String text) {
		System.err.println(text);
		System.err.flush();
		Runtime.getRuntime().halt(1);
	}

	private static void work(int id) {
		Random random = new Random(id);
		byte[][] live = new byte[256][];
		try {
			for (;;) {
				for (int i = 0; i < 200; i++) {
					int slot = random.nextInt(live.length);
					if (live[slot] != null && live[slot][live[slot].length - 1] != (byte) slot)
						wrong("an array has changed");
					live[slot] = new byte[1 + random.nextInt(4000)];
					live[slot][live[slot].length - 1] = (byte) slot;
				}
				ByteBuffer outside = ByteBuffer.allocateDirect(4096);
				outside.putLong(0, id);
				long start = System.nanoTime();
				Thread.sleep(3);
				if (System.nanoTime() - start < 3_000_000L)
					wrong("Thread.sleep returned early");
				if (outside.getLong(0) != id)
					wrong("a direct buffer has changed");
			}
		} catch (Throwable t) {
			wrong(t.toString());
		}
	}

	public static void main(String[] args) throws Exception {
		for (int i = 0; i < 4; i++) {
			int id = i;
			Thread t = new Thread(() -> work(id));
			t.setDaemon(true);
			t.start();
		}
		System.out.print("ready\n");
		System.out.flush();
		while (System.in.read() >= 0) {
		}
		System.exit(0);
	}
}
